"""The operations on a resource over HTTP, for its description (RabbitHub) and OpenAPI."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation, in the query or in the form."""

    name: str
    description: str
    location: str = "query"
    default: str | None = None
    """None if the parameter is required."""


@dataclass(frozen=True, slots=True)
class Action:
    """An operation: method, `hub.mode` and parameters."""

    name: str
    method: str
    description: str
    mode: str | None = None
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class Facet:
    """A group of operations with one path segment, such as `endpoint`."""

    name: str
    description: str
    actions: tuple[Action, ...]


_TOPIC = Parameter("hub.topic", "Routing key of the message.", default="")
_PERSIST = Parameter("hub.persistmsg", "0 for a transient message.", default="1")
_PROPERTY = Parameter("amqp.NAME", "Basic property, such as amqp.correlation_id.", default="")
_MANDATORY = Parameter("amqp.mandatory", "Answer 404 if it reaches no queue.", default="false")
_ARGUMENT = Parameter("arg.NAME", "Argument: a number, true, false or a string.", default="")
_DURABLE = Parameter("durable", "Whether it survives a restart.", default="true")
_AUTO_DELETE = Parameter("auto_delete", "Delete it when its last use ends.", default="false")
_IF_UNUSED = Parameter("if-unused", "Only if it is unused.", default="false")
_VERIFY_TOKEN = Parameter("hub.verify_token", "A token from generate_token.")

_TOKEN_ACTIONS = (
    Action(
        "generate_token",
        "GET",
        "Generates a token with which a subscribe request binds this resource.",
        "generate_token",
        (Parameter("hub.intended_use", "subscribe or unsubscribe."),),
    ),
    *(
        Action(
            f"verify_{mode}",
            "GET",
            "Answers the challenge of another hub.",
            mode,
            (_VERIFY_TOKEN, Parameter("hub.challenge", "Returned as the body.")),
        )
        for mode in ("subscribe", "unsubscribe")
    ),
)
_BATCH = Action(
    "deliver_batch",
    "POST",
    "Publishes many messages at once, as JSON lines or as a CloudEvents batch.",
    "batch",
    (_TOPIC, _PERSIST, _PROPERTY),
)
_INFO = Action("info", "GET", "Describes the resource as XML, JSON or HTML.")

_EXCHANGE_ENDPOINT = Facet(
    "endpoint",
    "Messages are published here.",
    (
        _INFO,
        Action(
            "create", "PUT", "Declares the exchange.",
            parameters=(
                Parameter("amqp.exchange_type", "Such as direct, fanout, topic.", default="fanout"),
                _DURABLE,
                _AUTO_DELETE,
                Parameter("internal", "Whether clients can't publish to it.", default="false"),
                _ARGUMENT,
            ),
        ),
        Action("destroy", "DELETE", "Deletes the exchange.", parameters=(_IF_UNUSED,)),
        Action(
            "deliver", "POST", "Publishes the body.",
            parameters=(_TOPIC, _PERSIST, _PROPERTY, _MANDATORY),
        ),
        _BATCH,
        *_TOKEN_ACTIONS,
    ),
)  # fmt: skip
_QUEUE_ENDPOINT = Facet(
    "endpoint",
    "Messages are published to the queue here.",
    (
        _INFO,
        Action("create", "PUT", "Declares the queue.",
               parameters=(_DURABLE, _AUTO_DELETE, _ARGUMENT)),
        Action(
            "destroy", "DELETE", "Deletes the queue.",
            parameters=(_IF_UNUSED, Parameter("if-empty", "Only if empty.", default="false")),
        ),
        Action("deliver", "POST", "Publishes the body to the queue.",
               parameters=(_TOPIC, _PERSIST, _PROPERTY)),
        _BATCH,
        *_TOKEN_ACTIONS,
    ),
)  # fmt: skip

_IDENTITY = (
    Parameter("hub.callback", "URL that messages are posted to.", "body"),
    Parameter("hub.topic", "Binding key; for a queue a label only.", "body"),
)
_VERIFY = (
    Parameter("hub.verify", "sync, async or both; none for trusted users.", "body", "sync"),
    Parameter("hub.verify_token", "Echoed to the callback.", "body", ""),
)
_DELIVERY = (
    Parameter("hub.lease_seconds", "Lease, up to a year.", "body", "2592000"),
    Parameter("hub.secret", "Signs the deliveries.", "body", ""),
    Parameter("hub.signature_method", "Hash function, such as sha256.", "body", ""),
    Parameter("hub.format", "plain, or a CloudEvents format.", "body", "plain"),
    Parameter("hub.order", "strict: a failed message blocks later ones.", "body", "loose"),
    Parameter("hub.in_flight", "Concurrent deliveries; 0 for the default.", "body", "0"),
    Parameter("hub.max_tps", "Deliveries per second; 0 for no limit.", "body", "0"),
    Parameter("hub.ha_mode", "all, none or a number; stored without effect.", "body", "none"),
    Parameter("hub.basic_auth", "base64 of user:password for the callback.", "body", ""),
)
_CONTACT = (
    Parameter("hub.app_name", "Application; required with a contact.", "body", ""),
    Parameter("hub.contact_name", "Name of the contact.", "body", ""),
    Parameter("hub.phone", "Phone number of the contact.", "body", ""),
    Parameter("hub.email", "Email address of the contact.", "body", ""),
    Parameter("hub.description", "Purpose of the subscription.", "body", ""),
)
_SUBSCRIBE = Facet(
    "subscribe",
    "Callbacks are subscribed here.",
    (
        _INFO,
        Action(
            "subscribe", "POST", "Subscribes a callback once it has confirmed.", "subscribe",
            (*_IDENTITY, *_VERIFY, *_DELIVERY, *_CONTACT),
        ),
        Action("unsubscribe", "POST", "Ends a subscription.", "unsubscribe",
               (*_IDENTITY, *_VERIFY)),
        Action("remove", "DELETE", "Ends a subscription without verification by its callback.",
               parameters=_IDENTITY),
    ),
)  # fmt: skip
_SUBSCRIPTIONS = Facet(
    "subscriptions",
    "Shows subscriptions to administrators.",
    (
        Action(
            "list", "GET", "Shows the subscription with this callback and topic.",
            parameters=(
                Parameter("hub.callback", "URL that messages are posted to."),
                Parameter("hub.topic", "Binding key, or topic URL."),
            ),
        ),
    ),
)  # fmt: skip

_STREAM = Facet(
    "stream",
    "Messages are read here over one connection, as they come.",
    (
        Action(
            "stream", "GET",
            "Sends messages as Server-Sent Events, JSON lines or over WebSocket, as they come.",
            parameters=(
                Parameter("key", "Binding key of an exchange; may be repeated.", default=""),
                Parameter("cursor", "The cursor of the last message, or an offset.", default=""),
                Parameter("ack", "manual: messages of a queue wait for acks.", default="auto"),
                Parameter("prefetch", "Messages that may wait for acks.", default="100"),
                Parameter("wait_s", "Of a long poll, up to 60.", default="20"),
                Parameter("mode", "publish: a WebSocket that delivers nothing.", default="read"),
                Parameter("token", "A bearer token, where no field can be set.", default=""),
            ),
        ),
    ),
)  # fmt: skip

FACETS = {
    ("endpoint", "x"): _EXCHANGE_ENDPOINT,
    ("endpoint", "q"): _QUEUE_ENDPOINT,
    ("subscribe", "x"): _SUBSCRIBE,
    ("subscribe", "q"): _SUBSCRIBE,
    ("subscriptions", "x"): _SUBSCRIPTIONS,
    ("subscriptions", "q"): _SUBSCRIPTIONS,
    ("stream", "x"): _STREAM,
    ("stream", "q"): _STREAM,
}

SUBSCRIBE_NAMES = frozenset(
    ("hub.mode", *(one.name for action in _SUBSCRIBE.actions for one in action.parameters))
)

_FILTERS = (
    *(
        Parameter(name, f"Only subscriptions with this {name}.", default="")
        for name in ("vhost", "resource_type", "resource_name", "topic", "callback")
    ),
    Parameter("status", "active or inactive.", default=""),
    Parameter("condition", "Only those in this condition, such as failing.", default=""),
    Parameter("hub.expires", "Only leases that end within so many days.", default=""),
    Parameter("name", "Only those with this in their callback or source.", default=""),
    Parameter("sort", "A key of the documents, such as success_ratio.", default=""),
    Parameter("sort_reverse", "true: the last first.", default="false"),
    Parameter("page", "Page number, from 1; all at once by default.", default=""),
    Parameter("page_size", "Page size, up to 500.", default="100"),
)
LISTING_NAMES = tuple(one.name for one in _FILTERS)
_TOPIC_URL = (
    Parameter("hub.topic", "URL of the topic: a feed, or an endpoint of this hub.", "body"),
    Parameter("hub.callback", "URL to which content is posted.", "body"),
)
_LEASE = Parameter(
    "hub.lease_seconds", "Lease; longer than 90 days is shortened.", "body", "864000"
)
_CONTENT = Parameter(
    "hub.content", "subscribe: full, or new for a feed's new entries. publish: the content itself.",
    "body", "",
)  # fmt: skip
_HUB = Facet(
    "hub",
    "WebSub and PubSubHubbub.",
    (
        Action("info", "GET", "Returns a short description."),
        Action(
            "subscribe", "POST", "Subscribes a callback; it is verified after the response.",
            "subscribe", (*_TOPIC_URL, _LEASE, _CONTENT, *_VERIFY[1:], *_DELIVERY[1:], *_CONTACT),
        ),
        Action("unsubscribe", "POST", "Ends a subscription once its callback has confirmed.",
               "unsubscribe", _TOPIC_URL),
        Action(
            "publish", "POST", "Fetches and distributes topics that have changed.", "publish",
            (
                Parameter("hub.url", "URL of the topic; may be repeated.", "body"),
                _CONTENT,
                Parameter("hub.content_type", "Content type of hub.content.", "body", ""),
                Parameter("hub.signature", "HMAC of the content, sha256=...", "body", ""),
            ),
        ),
    ),
)  # fmt: skip
HUB_NAMES = frozenset(
    ("hub.mode", *(one.name for action in _HUB.actions for one in action.parameters))
)
_WHERE = (
    Parameter("exchange", "The exchange to publish to; empty for queues by their names."),
    Parameter("vhost", "Its virtual host.", default="/"),
)
HUB_FACETS = {
    "/hub": _HUB,
    "/subscriptions": Facet(
        "subscriptions",
        "All subscriptions.",
        (
            Action("list", "GET", "Lists subscriptions.", parameters=_FILTERS),
            Action("import", "POST", "Imports a list of subscriptions, as JSON."),
        ),
    ),
    "/subscriptions/errors": Facet(
        "errors",
        "Subscriptions whose deliveries fail.",
        (Action("list", "GET", "Lists subscriptions with their last error.", parameters=_FILTERS),),
    ),
    "/transactions/{query}": Facet(
        "series",
        "The transactions of a query.",
        (
            Action(
                "forget",
                "DELETE",
                "Forgets the commits of a query that is finished.",
                parameters=_WHERE,
            ),
        ),
    ),
    "/transactions/{query}/{number}": Facet(
        "transaction",
        "Staged rows that are published together.",
        (
            Action("commit", "POST", "Publishes the rows of attempts, once.", parameters=_WHERE),
            Action("abort", "DELETE", "Drops the staged rows.", parameters=_WHERE),
        ),
    ),
    "/transactions/{query}/{number}/{partition}/{attempt}/{piece}": Facet(
        "piece",
        "Rows that one task stages.",
        (Action("stage", "PUT", "Stages rows for the commit.", parameters=_WHERE),),
    ),
}
"""The paths that name no exchange or queue."""
