"""Each ledger has an id of its own"""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("leader", schema=None) as batch_op:
        batch_op.add_column(sa.Column("ledger_id", sa.Text(), nullable=True))
    leader = sa.table("leader", sa.column("ledger_id", sa.Text))
    op.get_bind().execute(leader.update().values(ledger_id=secrets.token_hex(4)))
    with op.batch_alter_table("leader", schema=None) as batch_op:
        batch_op.alter_column("ledger_id", existing_type=sa.Text(), nullable=False)


def downgrade() -> None:
    with op.batch_alter_table("leader", schema=None) as batch_op:
        batch_op.drop_column("ledger_id")
