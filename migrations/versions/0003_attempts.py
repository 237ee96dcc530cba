"""Attempts of deliveries, and messages that block subscriptions with strict order."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "attempts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("subscription_id", sa.String(32), nullable=False),
        sa.Column("webhook_id", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("latency_ms", sa.Integer, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("response", sa.Text, nullable=False),
    )
    op.create_index("attempts_of_subscription", "attempts", ["subscription_id", "id"])
    failed = sa.text("outcome <> 'delivered'")
    for name, column in (("failures", "outcome"), ("failures_of_subscription", "subscription_id")):
        op.create_index(
            name, "attempts", [column, "id"], sqlite_where=failed, postgresql_where=failed
        )
    op.create_table(
        "blocked",
        sa.Column("subscription_id", sa.String(32), primary_key=True),
        sa.Column("webhook_id", sa.Text, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("not_before", sa.Float, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("blocked")
    op.drop_table("attempts")
