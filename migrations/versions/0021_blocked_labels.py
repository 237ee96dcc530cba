"""Until when a label of a tunnel is blocked by an administrator."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    until = sa.Column("blocked_until", sa.Float, nullable=False, server_default="0")
    op.add_column("tunnels", until)


def downgrade() -> None:
    with op.batch_alter_table("tunnels") as table:
        table.drop_column("blocked_until")
