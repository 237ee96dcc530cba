"""What pipeline jobs have found, by the hour."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "pipeline_results",
        sa.Column("job", sa.Text, primary_key=True),
        sa.Column("vhost", sa.Text, primary_key=True),
        sa.Column("at", sa.BigInteger, primary_key=True),
        sa.Column("digest", sa.String(32), primary_key=True),
        sa.Column("keys", sa.Text, nullable=False),
        sa.Column("totals", sa.Text, nullable=False),
        sa.Column("minutes", sa.Text, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("pipeline_results")
