"""Alembic's entry: runs on the connection that `database.upgrade` hands in."""

from __future__ import annotations

from alembic import context

from hubgov.ledger.schema import metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True
)
with context.begin_transaction():
    context.run_migrations()
