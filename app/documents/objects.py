"""The JSON documents of connections, channels, consumers, exchanges, queues and bindings.

Fields that are always there are those that typed clients of RabbitMQ's management API demand. With
`disable_stats` the figures are missing, with `columns` all other fields are.
"""

from __future__ import annotations

from typing import Annotated, Generic, Literal, NotRequired, TypedDict, TypeVar

from msgspec import Meta

from .common import Table
from .server import Details

Item = TypeVar("Item")


class Page(TypedDict, Generic[Item]):
    """A page of a list."""

    items: list[Item]
    page: int
    page_count: int
    page_size: int
    item_count: int
    filtered_count: int
    total_count: int


class DeliveryStats(TypedDict):
    deliver: int
    deliver_details: Details
    deliver_no_ack: int
    deliver_no_ack_details: Details
    get: int
    get_details: Details
    get_no_ack: int
    get_no_ack_details: Details
    get_empty: int
    get_empty_details: Details
    redeliver: int
    redeliver_details: Details
    ack: int
    ack_details: Details
    reject: int
    reject_details: Details
    deliver_get: int
    deliver_get_details: Details


class QueueStats(DeliveryStats):
    publish: int
    publish_details: Details


class ChannelStats(QueueStats):
    confirm: int
    confirm_details: Details
    return_unroutable: int
    return_unroutable_details: Details
    drop_unroutable: int
    drop_unroutable_details: Details


class VirtualHost(TypedDict):
    name: str
    description: str
    tags: list[str]
    default_queue_type: str
    protected_from_deletion: bool
    metadata: Table
    tracing: bool
    cluster_state: Table
    messages: NotRequired[int]
    messages_details: NotRequired[Details]
    messages_ready: NotRequired[int]
    messages_ready_details: NotRequired[Details]
    messages_unacknowledged: NotRequired[int]
    messages_unacknowledged_details: NotRequired[Details]
    message_stats: NotRequired[ChannelStats]


class ExchangeStats(TypedDict):
    publish_in: int
    publish_in_details: Details
    publish_out: int
    publish_out_details: Details


class PeerDetails(TypedDict):
    name: str
    peer_host: str
    peer_port: int


class Connection(TypedDict):
    name: str
    user_provided_name: str | None
    node: str
    type: Literal["network"]
    protocol: Literal["AMQP 0-9-1"]
    vhost: str
    user: str
    user_who_performed_action: str
    auth_mechanism: str
    connected_at: Annotated[int, Meta(description="Milliseconds since 1970.")]
    client_properties: Table
    host: str
    port: int
    peer_host: str
    peer_port: int
    ssl: bool
    ssl_protocol: str | None
    ssl_cipher: str | None
    state: Literal["running", "blocking", "blocked", "closing"]
    channels: int
    channel_max: int
    frame_max: int
    timeout: Annotated[int, Meta(description="The heartbeat, in seconds.")]
    recv_oct: NotRequired[int]
    recv_oct_details: NotRequired[Details]
    recv_cnt: NotRequired[int]
    recv_cnt_details: NotRequired[Details]
    send_oct: NotRequired[int]
    send_oct_details: NotRequired[Details]
    send_cnt: NotRequired[int]
    send_cnt_details: NotRequired[Details]
    send_pend: NotRequired[Annotated[int, Meta(description="Octets that wait.")]]


class ChannelDetails(PeerDetails):
    number: int
    connection_name: str
    node: str
    user: str


class QueueName(TypedDict):
    name: str
    vhost: str


class Consumer(TypedDict):
    consumer_tag: str
    active: bool
    activity_status: Literal["up", "single_active", "waiting"]
    ack_required: bool
    prefetch_count: int
    exclusive: bool
    arguments: Table
    consumer_timeout: Annotated[int, Meta(description="Milliseconds, 0 for none.")]
    queue: QueueName
    channel_details: ChannelDetails


class Holder(TypedDict):
    """A holder of unacknowledged messages; without a tag, of messages that were got one by one."""

    consumer_tag: str | None
    messages: int
    since: str | None
    channel: str
    connection: str
    user: str


class UnackedMessage(TypedDict):
    """A message that a channel holds unacknowledged."""

    delivery_tag: int
    consumer_tag: str
    unacked_for_seconds: int
    channel_name: str


class Channel(TypedDict):
    name: str
    number: int
    node: str
    vhost: str
    user: str
    user_who_performed_action: str
    state: Literal["running", "flow"]
    confirm: bool
    transactional: bool
    consumer_count: int
    prefetch_count: int
    global_prefetch_count: int
    messages_unacknowledged: int
    messages_unconfirmed: int
    messages_uncommitted: int
    acks_uncommitted: int
    connection_details: PeerDetails
    message_stats: NotRequired[ChannelStats]


class SingleChannel(Channel):
    consumer_details: list[Consumer]
    publishes: list[Table]
    deliveries: list[Table]


class Exchange(TypedDict):
    name: str
    vhost: str
    type: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: Table
    policy: str | None
    operator_policy: str | None
    effective_policy_definition: Table
    message_stats: NotRequired[ExchangeStats]


class SingleExchange(Exchange):
    incoming: list[Table]
    outgoing: list[Table]


class SubscriptionName(TypedDict):
    id: str
    callback: str


class Queue(TypedDict):
    name: str
    vhost: str
    type: str
    durable: bool
    auto_delete: bool
    exclusive: bool
    arguments: Table
    node: str
    state: Literal["running", "paused"]
    policy: str | None
    operator_policy: str | None
    effective_policy_definition: Table
    leader: NotRequired[str]
    members: NotRequired[list[str]]
    online: NotRequired[list[str]]
    messages: NotRequired[int]
    messages_details: NotRequired[Details]
    messages_ready: NotRequired[int]
    messages_ready_details: NotRequired[Details]
    messages_unacknowledged: NotRequired[int]
    messages_unacknowledged_details: NotRequired[Details]
    messages_ram: NotRequired[int]
    messages_ready_ram: NotRequired[int]
    messages_unacknowledged_ram: NotRequired[int]
    messages_persistent: NotRequired[int]
    messages_paged_out: NotRequired[int]
    message_bytes: NotRequired[Annotated[int, Meta(description="Estimated, as are its parts.")]]
    message_bytes_ready: NotRequired[int]
    message_bytes_unacknowledged: NotRequired[int]
    message_bytes_persistent: NotRequired[int]
    message_bytes_ram: NotRequired[int]
    memory: NotRequired[int]
    consumers: NotRequired[int]
    consumer_capacity: NotRequired[float]
    consumer_utilisation: NotRequired[float]
    exclusive_consumer_tag: NotRequired[str | None]
    single_active_consumer_tag: NotRequired[str | None]
    owner_pid_details: NotRequired[PeerDetails]
    idle_since: NotRequired[str | None]
    message_stats: NotRequired[QueueStats]
    subscription: NotRequired[
        Annotated[SubscriptionName, Meta(description="Whose messages wait in it.")]
    ]
    oldest_message_age_s: NotRequired[
        Annotated[float | None, Meta(description="Of the first ready one; null if on disk alone.")]
    ]


class SingleQueue(Queue):
    consumer_details: NotRequired[list[Consumer]]
    incoming: NotRequired[list[Table]]
    deliveries: NotRequired[list[Table]]


class Binding(TypedDict):
    source: str
    vhost: str
    destination: str
    destination_type: Literal["queue", "exchange"]
    routing_key: str
    arguments: Table
    properties_key: str
    subscription: NotRequired[
        Annotated[SubscriptionName, Meta(description="Whose messages wait in the queue.")]
    ]
