"""The hub's tables. Messages are not among them: they are in the engine's queues.

The module is long since it has all tables: their metadata is compared with the migrations.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Float, Index, Integer, String, Text, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """The metadata of all tables; a test compares the migrations with it."""


class ActiveHubRow(Base):
    """The hub that uses the database, for those that wait until it ends (`hub/peers`)."""

    __tablename__ = "active_hub"

    place: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    """Always 1: there is one row at most."""
    hub: Mapped[str] = mapped_column(String(32))
    """The id of its process; empty after it has stopped."""
    address: Mapped[str] = mapped_column(Text)
    key_print: Mapped[str] = mapped_column(String(64))
    """The fingerprint of its key."""


class SubscriptionRow(Base):
    """A subscription; `status` decides what becomes of it after a crash."""

    __tablename__ = "subscriptions"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    identity: Mapped[str] = mapped_column(String(64), unique=True)
    status: Mapped[str] = mapped_column(String(16))
    source_vhost: Mapped[str] = mapped_column(Text)
    source_kind: Mapped[str] = mapped_column(String(1))
    source_name: Mapped[str] = mapped_column(Text)
    topic: Mapped[str] = mapped_column(Text)
    callback: Mapped[str] = mapped_column(Text)
    """Encrypted; plain in rows of a Warren before 0.2."""
    lease_seconds: Mapped[int] = mapped_column(BigInteger)
    expires_at: Mapped[float] = mapped_column(Float)
    owner: Mapped[str] = mapped_column(Text)
    secret: Mapped[str | None] = mapped_column(Text)
    """`Keys` as JSON, encrypted; the plain secret in rows of a Warren before 0.2."""
    sink_vhost: Mapped[str | None] = mapped_column(Text)
    sink_kind: Mapped[str | None] = mapped_column(String(1))
    sink_name: Mapped[str | None] = mapped_column(Text)
    topic_url: Mapped[str] = mapped_column(Text, server_default="")
    base_url: Mapped[str] = mapped_column(Text, server_default="")
    options: Mapped[str] = mapped_column(Text, server_default="")
    """`Options` as JSON; empty for the defaults."""
    reason: Mapped[str] = mapped_column(Text, server_default="")


class VerificationRow(Base):
    """A subscribe or unsubscribe that was accepted (202) and is not verified yet."""

    __tablename__ = "verifications"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    request: Mapped[str] = mapped_column(Text)
    """The request as JSON, encrypted because it may have secrets."""
    asked_at: Mapped[float] = mapped_column(Float)


_Id = BigInteger().with_variant(Integer, "sqlite")  # the type that SQLite numbers rows with
FAILED = text("outcome <> 'delivered'")
_of_failures: dict[str, Any] = {"sqlite_where": FAILED, "postgresql_where": FAILED}


class AttemptRow(Base):
    """An attempt to deliver a message; rows are added, and dropped oldest first."""

    __tablename__ = "attempts"
    __table_args__ = (
        Index("attempts_of_subscription", "subscription_id", "id"),
        # For finding failures among many successes.
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
    """The beginning of the answer's body."""
    request: Mapped[str] = mapped_column(Text, server_default="")
    """The request, encrypted; empty where it is not kept."""
    next_at: Mapped[float | None] = mapped_column(Float)
    """When the message is delivered again."""


class BlockedRow(Base):
    """The failed message at the head of a subscription with strict order."""

    __tablename__ = "blocked"

    subscription_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    webhook_id: Mapped[str] = mapped_column(Text)
    failures: Mapped[int] = mapped_column(Integer)
    not_before: Mapped[float] = mapped_column(Float)
    reason: Mapped[str] = mapped_column(Text)


class TopicRow(Base):
    """An external topic, and its last fetch."""

    __tablename__ = "topics"

    key: Mapped[str] = mapped_column(Text, primary_key=True)
    """Its routing key in the exchange of topics."""
    url: Mapped[str] = mapped_column(Text)
    etag: Mapped[str] = mapped_column(Text)
    last_modified: Mapped[str] = mapped_column(Text)
    content_type: Mapped[str] = mapped_column(Text)
    body_digest: Mapped[str] = mapped_column(String(64))
    entries: Mapped[str] = mapped_column(Text)
    """Digests of a feed's entries by their ids, as JSON; empty if it is no feed."""
    checked_at: Mapped[float] = mapped_column(Float)
    changed_at: Mapped[float] = mapped_column(Float)
    failures: Mapped[int] = mapped_column(Integer)
    """Consecutive ones."""
    error: Mapped[str] = mapped_column(Text)
    """The error of the last fetch, empty after a success."""
    notice: Mapped[str] = mapped_column(Text)
    due_at: Mapped[float | None] = mapped_column(Float)
    """When to fetch it next; null if it was not pinged since the last fetch."""
    not_before: Mapped[float] = mapped_column(Float)
    """The time before which its server does not want to be asked again."""


class NewSubscriberRow(Base):
    """A subscription that was not sent any content of its topic yet."""

    __tablename__ = "new_subscribers"

    topic_key: Mapped[str] = mapped_column(Text, primary_key=True)
    identity: Mapped[str] = mapped_column(String(64), primary_key=True)


class UpstreamRow(Base):
    """A subscription of this hub at another one."""

    __tablename__ = "upstreams"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    vhost: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    """Chosen by the owner; of several rows with a name all but one are ending."""
    owner: Mapped[str] = mapped_column(Text)
    status: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str] = mapped_column(Text)
    wish: Mapped[str] = mapped_column(Text)
    """`UpstreamRequest` as JSON."""
    lines: Mapped[str] = mapped_column(Text)
    """`UpstreamLeases` as JSON, encrypted because of the callbacks' tokens and secrets."""
    renew_at: Mapped[float] = mapped_column(Float)


class CapabilityRow(Base):
    """A URL that lets its holder post to a resource; only a digest of its secret is stored."""

    __tablename__ = "capabilities"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    vhost: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(String(1))
    name: Mapped[str] = mapped_column(Text)
    routing_key: Mapped[str | None] = mapped_column(Text)
    """The only key that it publishes with; null for `hub.topic` of each request."""
    owner: Mapped[str] = mapped_column(Text)
    note: Mapped[str] = mapped_column(Text)
    made_at: Mapped[float] = mapped_column(Float)
    expires_at: Mapped[float | None] = mapped_column(Float)


class TokenRow(Base):
    """A token with scopes; only a digest of its secret is stored."""

    __tablename__ = "tokens"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    name: Mapped[str] = mapped_column(Text)
    owner: Mapped[str] = mapped_column(Text)
    scopes: Mapped[str] = mapped_column(Text)
    """A JSON list, as in requests."""
    made_at: Mapped[float] = mapped_column(Float)
    expires_at: Mapped[float] = mapped_column(Float)
    used_at: Mapped[float | None] = mapped_column(Float)
    """Some minutes late."""


class AuditRow(Base):
    """A change or a login; rows are added, and dropped oldest first."""

    __tablename__ = "audit"
    __table_args__ = (Index("audit_by_status", "status", "id"),)

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    at: Mapped[float] = mapped_column(Float)
    user: Mapped[str] = mapped_column(Text)
    address: Mapped[str] = mapped_column(Text)
    action: Mapped[str] = mapped_column(String(16))
    subject: Mapped[str] = mapped_column(Text)
    status: Mapped[int] = mapped_column(Integer)
    token: Mapped[str] = mapped_column(Text)
    before: Mapped[str] = mapped_column(Text)
    after: Mapped[str] = mapped_column(Text)


class PipelineRunRow(Base):
    """A run of a pipeline job, with its last report."""

    __tablename__ = "pipeline_runs"

    job: Mapped[str] = mapped_column(Text, primary_key=True)
    name: Mapped[str] = mapped_column(Text, primary_key=True)
    vhost: Mapped[str] = mapped_column(Text)
    stream: Mapped[str] = mapped_column(Text, server_default="")
    owner: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(String(16))
    rows: Mapped[int] = mapped_column(BigInteger)
    lag: Mapped[int | None] = mapped_column(BigInteger)
    dropped: Mapped[int] = mapped_column(BigInteger, server_default="0")
    error: Mapped[str] = mapped_column(Text)
    started_at: Mapped[float] = mapped_column(Float)
    updated_at: Mapped[float] = mapped_column(Float)


class PipelineResultRow(Base):
    """The result of a pipeline job for a group in an hour."""

    __tablename__ = "pipeline_results"

    job: Mapped[str] = mapped_column(Text, primary_key=True)
    vhost: Mapped[str] = mapped_column(Text, primary_key=True)
    at: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    """The beginning of the hour, in seconds since 1970; of trending terms the end of the window."""
    digest: Mapped[str] = mapped_column(String(32), primary_key=True)
    """Of the keys."""
    keys: Mapped[str] = mapped_column(Text)
    """What names the group, as JSON."""
    totals: Mapped[str] = mapped_column(Text)
    """The values of the hour, as JSON."""
    minutes: Mapped[str] = mapped_column(Text)
    """For each minute the offset and values of its newest row, as JSON."""


class TunnelRow(Base):
    """The label of a tunnelled application; only a digest of its token is stored."""

    __tablename__ = "tunnels"

    label: Mapped[str] = mapped_column(String(63), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64))
    owner: Mapped[str] = mapped_column(Text)
    """Empty for an anonymous client."""
    lease_s: Mapped[int] = mapped_column(Integer)
    made_at: Mapped[float] = mapped_column(Float)
    released_at: Mapped[float | None] = mapped_column(Float)
    """Null for an enrolled label; a released one is kept for a day."""
    blocked_until: Mapped[float] = mapped_column(Float, server_default="0")


class FeedRow(Base):
    """A registered feed, with the outcome of its last poll."""

    __tablename__ = "feeds"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(Text, unique=True)
    vhost: Mapped[str] = mapped_column(Text)
    owner: Mapped[str] = mapped_column(Text)
    url: Mapped[str] = mapped_column(Text)
    request: Mapped[str] = mapped_column(Text)
    """`FeedRequest` as JSON."""
    state: Mapped[str] = mapped_column(String(16))
    number: Mapped[int] = mapped_column(BigInteger)
    """Of the last poll that found a change; its messages are the transaction of this number."""
    next_at: Mapped[float] = mapped_column(Float)
    """When it is polled next."""
    status: Mapped[str] = mapped_column(Text)
    """`FeedStatus` as JSON."""
    head: Mapped[str] = mapped_column(Text)
    """`FeedHead` as JSON; empty before the first poll."""


class FeedListRow(Base):
    """The feeds that a user has imported into a virtual host, as their document had them."""

    __tablename__ = "feed_lists"

    vhost: Mapped[str] = mapped_column(Text, primary_key=True)
    owner: Mapped[str] = mapped_column(Text, primary_key=True)
    document: Mapped[str] = mapped_column(Text)
    """`Opml` as JSON."""


class FeedItemRow(Base):
    """An item of a feed or of an output; the older ones of a collection keep their digests only."""

    __tablename__ = "feed_items"
    __table_args__ = (Index("items_by_id", "collection", "item_id", unique=True),)

    collection: Mapped[str] = mapped_column(Text, primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    """It rises within a collection, so a changed item gets a new one."""
    item_id: Mapped[str] = mapped_column(Text)
    digest: Mapped[str] = mapped_column(String(64))
    item: Mapped[str | None] = mapped_column(Text)
    """The item as JSON; null for an older one."""
    kind: Mapped[str] = mapped_column(String(8))
    """`new` or `updated`."""
    poll: Mapped[int] = mapped_column(BigInteger)
    """The poll whose transaction has its message; 0 for none."""
    at: Mapped[float] = mapped_column(Float)
    origin: Mapped[str] = mapped_column(String(32), server_default="")
    """Of an output's item: a digest of where its message was published."""


class OutputRow(Base):
    """An output; a removed one is kept for a while, so that its documents are known to be gone."""

    __tablename__ = "outputs"

    vhost: Mapped[str] = mapped_column(Text, primary_key=True)
    name: Mapped[str] = mapped_column(Text, primary_key=True)
    owner: Mapped[str] = mapped_column(Text)
    definition: Mapped[str] = mapped_column(Text)
    """`Definition` as JSON."""
    bound: Mapped[str] = mapped_column(Text)
    """All bindings that its queue may have, as JSON."""
    offsets: Mapped[str] = mapped_column(Text)
    """The next offset of each stream that it reads, with the stream's incarnation, as JSON."""
    made_at: Mapped[float] = mapped_column(Float)
    changed_at: Mapped[float] = mapped_column(Float)
    removed_at: Mapped[float | None] = mapped_column(Float)


class OutputTokenRow(Base):
    """The token of a partner for the documents of an output; only a digest of it is stored."""

    __tablename__ = "output_tokens"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    vhost: Mapped[str] = mapped_column(Text)
    output: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    made_at: Mapped[float] = mapped_column(Float)


class OutputMarkRow(Base):
    """An item that a pipeline run has marked as a near-duplicate of an earlier one."""

    __tablename__ = "output_marks"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    """Rises with time: the oldest ones are dropped."""
    vhost: Mapped[str] = mapped_column(Text)
    output: Mapped[str] = mapped_column(Text)
    digest: Mapped[str] = mapped_column(String(64))
    """Of the item's id, which may be too long for an index."""
    __table_args__ = (Index("marks_of_output", "vhost", "output", "digest", unique=True),)
