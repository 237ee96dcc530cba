"""Labels of tunnelled applications."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tunnels",
        sa.Column("label", sa.String(63), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("lease_s", sa.Integer, nullable=False),
        sa.Column("made_at", sa.Float, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("tunnels")
