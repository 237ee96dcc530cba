"""URLs that let their holder post to a resource."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "capabilities",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("vhost", sa.Text, nullable=False),
        sa.Column("kind", sa.String(1), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("routing_key", sa.Text),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("made_at", sa.Float, nullable=False),
        sa.Column("expires_at", sa.Float),
    )


def downgrade() -> None:
    op.drop_table("capabilities")
