"""Outputs, the tokens of their partners, and the near-duplicates that they leave out."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "outputs",
        sa.Column("vhost", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("bound", sa.Text, nullable=False),
        sa.Column("offsets", sa.Text, nullable=False),
        sa.Column("made_at", sa.Float, nullable=False),
        sa.Column("changed_at", sa.Float, nullable=False),
        sa.Column("removed_at", sa.Float, nullable=True),
    )
    op.create_table(
        "output_tokens",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("vhost", sa.Text, nullable=False),
        sa.Column("output", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("made_at", sa.Float, nullable=False),
    )
    op.create_table(
        "output_marks",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("vhost", sa.Text, nullable=False),
        sa.Column("output", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
    )
    op.create_index("marks_of_output", "output_marks", ["vhost", "output", "digest"], unique=True)


def downgrade() -> None:
    op.drop_table("output_marks")
    op.drop_table("output_tokens")
    op.drop_table("outputs")
