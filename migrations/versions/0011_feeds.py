"""Registered feeds and stored items."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "feeds",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("vhost", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("next_at", sa.Float, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("head", sa.Text, nullable=False),
    )
    op.create_table(
        "feed_items",
        sa.Column("collection", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True),
        sa.Column("item_id", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("item", sa.Text),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("poll", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_index("items_by_id", "feed_items", ["collection", "item_id"], unique=True)


def downgrade() -> None:
    op.drop_table("feed_items")
    op.drop_table("feeds")
