"""An index by which old answers are found"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_idempotency_at", "idempotency", ["at"])


def downgrade() -> None:
    op.drop_index("ix_idempotency_at", "idempotency")
