"""The hub's tables. Messages are never here: they are in the engine's queues."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Float, Index, Integer, String, Text, text
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
    """Sealed; bare in rows of a Warren before 0.2."""
    lease_seconds: Mapped[int] = mapped_column(BigInteger)
    expires_at: Mapped[float] = mapped_column(Float)
    owner: Mapped[str] = mapped_column(Text)
    secret: Mapped[str | None] = mapped_column(Text)
    """`Keys` as JSON, sealed; the bare secret in rows of a Warren before 0.2."""
    sink_vhost: Mapped[str | None] = mapped_column(Text)
    sink_kind: Mapped[str | None] = mapped_column(String(1))
    sink_name: Mapped[str | None] = mapped_column(Text)
    topic_url: Mapped[str] = mapped_column(Text, server_default="")
    base_url: Mapped[str] = mapped_column(Text, server_default="")
    options: Mapped[str] = mapped_column(Text, server_default="")
    """`Options` as JSON; empty for the defaults."""
    reason: Mapped[str] = mapped_column(Text, server_default="")


class VerificationRow(Base):
    """A subscribe or unsubscribe that was accepted (202) and not yet asked of its callback."""

    __tablename__ = "verifications"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    request: Mapped[str] = mapped_column(Text)
    """The request as JSON, sealed, for it may hold secrets."""
    asked_at: Mapped[float] = mapped_column(Float)


_Id = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows of this type alone
FAILED = text("outcome <> 'delivered'")
_of_failures: dict[str, Any] = {"sqlite_where": FAILED, "postgresql_where": FAILED}


class AttemptRow(Base):
    """One attempt to deliver one message; rows are only ever added, and dropped oldest first."""

    __tablename__ = "attempts"
    __table_args__ = (
        Index("attempts_of_subscription", "subscription_id", "id"),
        # Failures are looked for among many successes, which these leave out.
        Index("failures", "outcome", "id", **_of_failures),
        Index("failures_of_subscription", "subscription_id", "id", **_of_failures),
    )

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    subscription_id: Mapped[str] = mapped_column(String(32))
    webhook_id: Mapped[str] = mapped_column(Text)
    number: Mapped[int] = mapped_column(Integer)
    """1 for the first attempt of the message."""
    at: Mapped[float] = mapped_column(Float)
    latency_ms: Mapped[int] = mapped_column(Integer)
    status: Mapped[int | None] = mapped_column(Integer)
    outcome: Mapped[str] = mapped_column(String(16))
    response: Mapped[str] = mapped_column(Text)
    callback: Mapped[str] = mapped_column(Text, server_default="")
    body: Mapped[str] = mapped_column(Text, server_default="")
    """The beginning of the answer's."""


class BlockedRow(Base):
    """The message that the strict order of a subscription waits for."""

    __tablename__ = "blocked"

    subscription_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    webhook_id: Mapped[str] = mapped_column(Text)
    failures: Mapped[int] = mapped_column(Integer)
    not_before: Mapped[float] = mapped_column(Float)
    reason: Mapped[str] = mapped_column(Text)


class TopicRow(Base):
    """An external topic, and what was fetched of it last."""

    __tablename__ = "topics"

    key: Mapped[str] = mapped_column(Text, primary_key=True)
    """Its routing key in the exchange of topics."""
    url: Mapped[str] = mapped_column(Text)
    etag: Mapped[str] = mapped_column(Text)
    last_modified: Mapped[str] = mapped_column(Text)
    content_type: Mapped[str] = mapped_column(Text)
    body_digest: Mapped[str] = mapped_column(String(64))
    entries: Mapped[str] = mapped_column(Text)
    """Digests of a feed's entries by their ids, as JSON; empty for what is no feed."""
    checked_at: Mapped[float] = mapped_column(Float)
    changed_at: Mapped[float] = mapped_column(Float)
    failures: Mapped[int] = mapped_column(Integer)
    """In a row."""
    error: Mapped[str] = mapped_column(Text)
    """Of the last fetch; empty where it went well."""
    notice: Mapped[str] = mapped_column(Text)
    due_at: Mapped[float | None] = mapped_column(Float)
    """When to fetch it next: set by a ping until it is fetched, or is given up."""
    not_before: Mapped[float] = mapped_column(Float)
    """Until when its server has asked to be left alone."""


class NewSubscriberRow(Base):
    """A subscription that has not been sent any content of its topic yet."""

    __tablename__ = "new_subscribers"

    topic_key: Mapped[str] = mapped_column(Text, primary_key=True)
    identity: Mapped[str] = mapped_column(String(64), primary_key=True)


class UpstreamRow(Base):
    """A subscription of this hub at another one."""

    __tablename__ = "upstreams"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    vhost: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    """Chosen by the owner; of several rows with one name all but one are ending."""
    owner: Mapped[str] = mapped_column(Text)
    status: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str] = mapped_column(Text)
    wish: Mapped[str] = mapped_column(Text)
    """`Wish` as JSON."""
    lines: Mapped[str] = mapped_column(Text)
    """`Lines` as JSON, sealed: the callbacks' tokens and secrets are in it."""
    renew_at: Mapped[float] = mapped_column(Float)


class CapabilityRow(Base):
    """A URL that lets its holder post to a resource; only a digest of its secret is kept."""

    __tablename__ = "capabilities"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    vhost: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(String(1))
    name: Mapped[str] = mapped_column(Text)
    routing_key: Mapped[str | None] = mapped_column(Text)
    """The only one that it publishes with; without one, `hub.topic` of each request."""
    owner: Mapped[str] = mapped_column(Text)
    note: Mapped[str] = mapped_column(Text)
    made_at: Mapped[float] = mapped_column(Float)
    expires_at: Mapped[float | None] = mapped_column(Float)
