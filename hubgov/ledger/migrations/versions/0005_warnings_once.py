"""Only warnings are unique by their threshold: a decision that is told has none"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

OLD = "uq_notice_allocation_lease_version_threshold_ms"
COLUMNS = ["allocation", "lease_version", "threshold_ms"]
WARNINGS = sa.text("threshold_ms > 0")


def upgrade() -> None:
    with op.batch_alter_table("notice", schema=None) as batch_op:
        batch_op.drop_constraint(OLD, type_="unique")
        batch_op.create_index(
            "uq_notice_warning", COLUMNS, unique=True, sqlite_where=WARNINGS, postgresql_where=WARNINGS
        )


def downgrade() -> None:
    with op.batch_alter_table("notice", schema=None) as batch_op:
        batch_op.drop_index("uq_notice_warning")
        batch_op.create_unique_constraint(OLD, COLUMNS)
