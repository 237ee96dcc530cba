"""Subscriptions that were not sent any content of their topic yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "new_subscribers",
        sa.Column("topic_key", sa.Text, primary_key=True),
        sa.Column("identity", sa.String(64), primary_key=True),
    )


def downgrade() -> None:
    op.drop_table("new_subscribers")
