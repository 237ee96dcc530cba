"""The request of each attempt, and when its message is tried again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("attempts", sa.Column("request", sa.Text, nullable=False, server_default=""))
    op.add_column("attempts", sa.Column("next_at", sa.Float, nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("attempts") as table:
        table.drop_column("next_at")
        table.drop_column("request")
