"""Subscriptions of this hub at other hubs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "upstreams",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("vhost", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("wish", sa.Text, nullable=False),
        sa.Column("lines", sa.Text, nullable=False),
        sa.Column("renew_at", sa.Float, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("upstreams")
