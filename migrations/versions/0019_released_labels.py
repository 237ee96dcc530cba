"""When a label of a tunnel was released."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tunnels", sa.Column("released_at", sa.Float))


def downgrade() -> None:
    op.execute("DELETE FROM tunnels WHERE released_at IS NOT NULL")
    with op.batch_alter_table("tunnels") as table:
        table.drop_column("released_at")
