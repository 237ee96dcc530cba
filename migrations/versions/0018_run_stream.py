"""The stream that a pipeline run reads."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    stream = sa.Column("stream", sa.Text, nullable=False, server_default="")
    op.add_column("pipeline_runs", stream)


def downgrade() -> None:
    with op.batch_alter_table("pipeline_runs") as table:
        table.drop_column("stream")
