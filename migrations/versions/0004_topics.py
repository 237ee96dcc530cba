"""External topics with their last fetches."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "topics",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("etag", sa.Text, nullable=False),
        sa.Column("last_modified", sa.Text, nullable=False),
        sa.Column("content_type", sa.Text, nullable=False),
        sa.Column("body_digest", sa.String(64), nullable=False),
        sa.Column("entries", sa.Text, nullable=False),
        sa.Column("checked_at", sa.Float, nullable=False),
        sa.Column("changed_at", sa.Float, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("notice", sa.Text, nullable=False),
        sa.Column("due_at", sa.Float),
        sa.Column("not_before", sa.Float, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("topics")
