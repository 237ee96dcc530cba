"""The subscriptions table."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "subscriptions",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("identity", sa.String(64), nullable=False, unique=True),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("source_vhost", sa.Text, nullable=False),
        sa.Column("source_kind", sa.String(1), nullable=False),
        sa.Column("source_name", sa.Text, nullable=False),
        sa.Column("topic", sa.Text, nullable=False),
        sa.Column("callback", sa.Text, nullable=False),
        sa.Column("lease_seconds", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("secret", sa.Text),
        sa.Column("sink_vhost", sa.Text),
        sa.Column("sink_kind", sa.String(1)),
        sa.Column("sink_name", sa.Text),
    )


def downgrade() -> None:
    op.drop_table("subscriptions")
