"""The hub's tables. Messages are never here: they are in the engine's queues."""

from __future__ import annotations

from sqlalchemy import BigInteger, Float, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """Every table's metadata; the migrations are checked against it."""


class SubscriptionRow(Base):
    """One subscription; `status` tells what to do with it after a crash."""

    __tablename__ = "subscriptions"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    identity: Mapped[str] = mapped_column(String(64), unique=True)
    status: Mapped[str] = mapped_column(String(16))
    source_vhost: Mapped[str] = mapped_column(Text)
    source_kind: Mapped[str] = mapped_column(String(1))
    source_name: Mapped[str] = mapped_column(Text)
    topic: Mapped[str] = mapped_column(Text)
    callback: Mapped[str] = mapped_column(Text)
    lease_seconds: Mapped[int] = mapped_column(BigInteger)
    expires_at: Mapped[float] = mapped_column(Float)
    owner: Mapped[str] = mapped_column(Text)
    secret: Mapped[str | None] = mapped_column(Text)
    sink_vhost: Mapped[str | None] = mapped_column(Text)
    sink_kind: Mapped[str | None] = mapped_column(String(1))
    sink_name: Mapped[str | None] = mapped_column(Text)
