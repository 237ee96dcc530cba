"""Rows that came too late to be counted by a pipeline run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    dropped = sa.Column("dropped", sa.BigInteger, nullable=False, server_default="0")
    op.add_column("pipeline_runs", dropped)


def downgrade() -> None:
    with op.batch_alter_table("pipeline_runs") as table:
        table.drop_column("dropped")
