"""The tables. Hot columns are derived from `body`, the whole record as JSON; both are written together.

Instants and spans are BIGINT milliseconds, GPUs BIGINT thousandths, money BIGINT millionths. `journal`,
`charge` and `segment` are append-only: nothing in them is ever updated or deleted.
"""

from __future__ import annotations

import sqlalchemy as sa

NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = sa.MetaData(naming_convention=NAMES)

Serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""SQLite numbers rows by itself only for a column of type INTEGER."""

leader = sa.Table(
    "leader",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("until", sa.BigInteger, nullable=False),
    sa.Column("last_seq", sa.BigInteger, nullable=False),
    # Random, from the first day: a ledger made anew, or another one in the same place, is told from this one.
    sa.Column("ledger_id", sa.Text, nullable=False),
)

journal = sa.Table(
    "journal",
    metadata,
    sa.Column("seq", Serial, primary_key=True),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("record", sa.Text, nullable=False),
    sa.Column("workload", sa.Text),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("was", sa.Text),
    sa.Column("became", sa.Text),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Index("ix_journal_workload_seq", "workload", "seq"),
    sa.Index("ix_journal_event_seq", "event", "seq"),
)

workload = sa.Table(
    "workload",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("seq", sa.BigInteger, nullable=False, unique=True),
    sa.Column("live", sa.Boolean, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("server", sa.Text),
    sa.Column("team", sa.Text, nullable=False),
    sa.Column("project", sa.Text, nullable=False),
    sa.Column("environment", sa.Text, nullable=False),
    sa.Column("queue", sa.Text, nullable=False),
    sa.Column("submitted_at", sa.BigInteger, nullable=False),
    sa.Column("ended_at", sa.BigInteger),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.CheckConstraint("version >= 1", name="version_counts"),
    sa.Index("ix_workload_live", "live"),
    sa.Index("ix_workload_owner_seq", "owner", "seq"),
    # One ticket per notebook server at a time: two spawns of one server find the same one.
    sa.Index(
        "uq_workload_live_server",
        "owner",
        "server",
        unique=True,
        sqlite_where=sa.text("live AND server IS NOT NULL"),
        postgresql_where=sa.text("live AND server IS NOT NULL"),
    ),
)

allocation = sa.Table(
    "allocation",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("workload", sa.Text, sa.ForeignKey("workload.id"), nullable=False),
    sa.Column("attempt", sa.BigInteger, nullable=False),
    sa.Column("live", sa.Boolean, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("project", sa.Text, nullable=False),
    sa.Column("milli_gpus", sa.BigInteger, nullable=False),
    sa.Column("reserved_at", sa.BigInteger, nullable=False),
    sa.Column("ended_at", sa.BigInteger),
    sa.Column("lease_version", sa.BigInteger, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.UniqueConstraint("workload", "attempt"),
    sa.CheckConstraint("milli_gpus >= 0", name="gpus_not_negative"),
    sa.Index("ix_allocation_live", "live"),
    sa.Index("ix_allocation_ended_at", "ended_at"),
)

device_share = sa.Table(
    "device_share",
    metadata,
    sa.Column("node", sa.Text, primary_key=True),
    sa.Column("device", sa.Text, primary_key=True),
    sa.Column("allocation", sa.Text, sa.ForeignKey("allocation.id"), primary_key=True),
    sa.Column("milli", sa.BigInteger, nullable=False),
    sa.Column("memory_mib", sa.BigInteger, nullable=False),
    sa.CheckConstraint("milli > 0 AND milli <= 1000", name="share_of_one"),
    # A whole card has one user: the second guard behind the core's own.
    sa.Index(
        "uq_device_share_whole",
        "node",
        "device",
        unique=True,
        sqlite_where=sa.text("milli = 1000"),
        postgresql_where=sa.text("milli = 1000"),
    ),
)
"""Which live allocation holds which device (a UUID); rows go when it is free again (history: `segment`)."""

charge = sa.Table(
    "charge",
    metadata,
    sa.Column("seq", Serial, primary_key=True),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("allocation", sa.Text, sa.ForeignKey("allocation.id"), nullable=False),
    sa.Column("pool", sa.Text, nullable=False),
    sa.Column("flavor", sa.Text, nullable=False),
    sa.Column("team", sa.Text, nullable=False),
    sa.Column("project", sa.Text, nullable=False),
    sa.Column("milli_gpus", sa.BigInteger, nullable=False),
    sa.Column("cause", sa.Text, nullable=False),
    sa.Index("ix_charge_allocation", "allocation"),
)
"""Occupied quota: +milli at reservation, -milli at the end. The sum of an allocation is its charge."""

segment = sa.Table(
    "segment",
    metadata,
    sa.Column("seq", Serial, primary_key=True),
    sa.Column("allocation", sa.Text, sa.ForeignKey("allocation.id"), nullable=False),
    sa.Column("workload", sa.Text, nullable=False),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("began", sa.BigInteger, nullable=False),
    sa.Column("ended", sa.BigInteger, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("team", sa.Text, nullable=False),
    sa.Column("project", sa.Text, nullable=False),
    sa.Column("environment", sa.Text, nullable=False),
    sa.Column("queue", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("class", sa.Text, nullable=False),
    sa.Column("pool", sa.Text, nullable=False),
    sa.Column("flavor", sa.Text),
    sa.Column("milli_gpus", sa.BigInteger, nullable=False),
    sa.Column("price_micro_per_hour", sa.BigInteger, nullable=False),
    sa.Column("currency", sa.Text, nullable=False),
    sa.Column("queue_factor_micro", sa.BigInteger, nullable=False),
    sa.Column("class_factor_micro", sa.BigInteger, nullable=False),
    sa.Column("borrowed_factor_micro", sa.BigInteger, nullable=False),
    sa.Column("borrowed", sa.Boolean, nullable=False),
    sa.Column("simulated", sa.Boolean, nullable=False),
    sa.CheckConstraint("ended >= began", name="forward"),
    sa.Index("ix_segment_allocation", "allocation"),
    sa.Index("ix_segment_ended", "ended"),
)
"""Usage: spans in which state, share, price, queue and class were constant. Written when the span is over."""

extension = sa.Table(
    "extension",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("workload", sa.Text, sa.ForeignKey("workload.id"), nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Index("ix_extension_workload", "workload"),
)

notice = sa.Table(
    "notice",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("allocation", sa.Text, sa.ForeignKey("allocation.id"), nullable=False),
    sa.Column("lease_version", sa.BigInteger, nullable=False),
    sa.Column("threshold_ms", sa.BigInteger, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    # Each warning once per version of a lease; decisions, which have no threshold, are told apart by their id.
    sa.Index(
        "uq_notice_warning",
        "allocation",
        "lease_version",
        "threshold_ms",
        unique=True,
        sqlite_where=sa.text("threshold_ms > 0"),
        postgresql_where=sa.text("threshold_ms > 0"),
    ),
)

save = sa.Table(
    "save",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("workload", sa.Text, sa.ForeignKey("workload.id"), nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Index("ix_save_workload", "workload"),
)

queue_hold = sa.Table(
    "queue_hold",
    metadata,
    sa.Column("queue", sa.Text, primary_key=True),
    sa.Column("held", sa.Boolean, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
)

departure = sa.Table(
    "departure",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
)

node = sa.Table(
    "node",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
)

policy = sa.Table(
    "policy",
    metadata,
    sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("applied_at", sa.BigInteger, nullable=False),
    sa.Column("applied_by", sa.Text, nullable=False),
)

idempotency = sa.Table(
    "idempotency",
    metadata,
    sa.Column("principal", sa.Text, primary_key=True),
    sa.Column("route", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("result", sa.Text, nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Index("ix_idempotency_at", "at"),
)
"""Answers to requests that came with a key; removed once the key is so old that it counts as a new one."""
