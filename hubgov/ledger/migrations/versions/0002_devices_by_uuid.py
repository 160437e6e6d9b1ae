"""Devices by UUID, since a driver may number its cards anew; grace and warnings kept in the lease.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

MINUTE_MS = 60_000
# What a queue has where its policy doesn't say: leases of before this revision were granted without a copy.
GRACE_MS = 5 * MINUTE_MS
WARN_MS = [30 * MINUTE_MS, 10 * MINUTE_MS, 2 * MINUTE_MS]


allocation = sa.table("allocation", sa.column("id", sa.Text), sa.column("body", sa.Text))


def upgrade() -> None:
    _key_by("uuid", sa.BigInteger(), sa.Text(), "device::text")
    connection = op.get_bind()
    for name, text in connection.execute(sa.select(allocation.c.id, allocation.c.body)).all():
        body = json.loads(text)
        body["lease"] = {"grace_ms": GRACE_MS, "warn_ms": WARN_MS, **body["lease"]}
        text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
        connection.execute(allocation.update().where(allocation.c.id == name).values(body=text))


def downgrade() -> None:
    _key_by("index", sa.Text(), sa.BigInteger(), "device::bigint")


def _key_by(field: str, was: sa.types.TypeEngine[Any], becomes: sa.types.TypeEngine[Any], cast: str) -> None:
    """Write what is held anew, each device under that field of its allocation's record."""
    share = sa.table(
        "device_share", *(sa.column(c) for c in ("node", "device", "allocation", "milli", "memory_mib"))
    )
    connection = op.get_bind()
    held = connection.execute(sa.select(share.c.allocation).distinct()).scalars().all()
    connection.execute(share.delete())
    with op.batch_alter_table("device_share", schema=None) as batch_op:
        batch_op.alter_column(
            "device", existing_type=was, type_=becomes, existing_nullable=False, postgresql_using=cast
        )
    for name, text in connection.execute(
        sa.select(allocation.c.id, allocation.c.body).where(allocation.c.id.in_(held))
    ).all():
        for device in json.loads(text)["devices"]:
            row = {"node": device["node"], "device": device[field], "allocation": name}
            row |= {"milli": device["milli"], "memory_mib": device["memory_mib"]}
            connection.execute(share.insert(), row)
