"""The callback of each attempt, and the beginning of the answer's body."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

COLUMNS = ("callback", "body")


def upgrade() -> None:
    # Without batch mode, which would copy a million rows: both databases add a column in place.
    for name in COLUMNS:
        op.add_column("attempts", sa.Column(name, sa.Text, nullable=False, server_default=""))


def downgrade() -> None:
    with op.batch_alter_table("attempts") as table:
        for name in reversed(COLUMNS):
            table.drop_column(name)
