"""Where the message of an output's item was published."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    origin = sa.Column("origin", sa.String(32), nullable=False, server_default="")
    op.add_column("feed_items", origin)


def downgrade() -> None:
    # In the documents of the earlier version they would have the ids of other items.
    op.execute("DELETE FROM feed_items WHERE origin <> '' AND item_id LIKE 'urn:warren:item:%'")
    with op.batch_alter_table("feed_items") as table:
        table.drop_column("origin")
