"""Subscriptions that have not been sent any content of their topic yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    column = sa.Column("new_subscribers", sa.Text, nullable=False, server_default="")
    op.add_column("topics", column)


def downgrade() -> None:
    with op.batch_alter_table("topics") as table:
        table.drop_column("new_subscribers")
