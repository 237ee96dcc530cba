"""The audit log, and when tokens were last used."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("action", sa.String(16), nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("before", sa.Text, nullable=False),
        sa.Column("after", sa.Text, nullable=False),
    )
    op.create_index("audit_by_status", "audit", ["status", "id"])
    op.add_column("tokens", sa.Column("used_at", sa.Float))


def downgrade() -> None:
    with op.batch_alter_table("tokens") as tokens:
        tokens.drop_column("used_at")
    op.drop_table("audit")
