"""The record: the only place that knows SQL. SQLite and PostgreSQL, append-only where money and quota are."""
