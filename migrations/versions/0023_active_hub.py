"""The hub that uses the database, for those that wait until it ends."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "active_hub",
        sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("hub", sa.String(32), nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("key_print", sa.String(64), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("active_hub")
