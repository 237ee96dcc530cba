"""Options of subscriptions, and pending verifications."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("topic_url", "base_url", "options", "reason"):
        column = sa.Column(name, sa.Text, nullable=False, server_default="")
        op.add_column("subscriptions", column)
    op.create_table(
        "verifications",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("asked_at", sa.Float, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("verifications")
    with op.batch_alter_table("subscriptions") as table:
        for name in ("topic_url", "base_url", "options", "reason"):
            table.drop_column(name)
