"""What can be done with a resource over HTTP, as its description tells (RabbitHub)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    description: str
    location: str = "query"
    default: str | None = None
    """None for one that must be given."""


@dataclass(frozen=True, slots=True)
class Action:
    name: str
    method: str
    description: str
    mode: str | None = None
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class Facet:
    name: str
    description: str
    actions: tuple[Action, ...]


_TOPIC = Parameter("hub.topic", "Routing key of the message.", default="")
_PERSIST = Parameter("hub.persistmsg", "0 for a message that a restart may lose.", default="1")
_PROPERTY = Parameter("amqp.NAME", "Basic property, such as amqp.correlation_id.", default="")
_MANDATORY = Parameter("amqp.mandatory", "Answer 404 if no queue wants it.", default="false")
_ARGUMENT = Parameter("arg.NAME", "Argument: a number, true, false or a string.", default="")
_DURABLE = Parameter("durable", "Whether it survives a restart.", default="true")
_AUTO_DELETE = Parameter("auto_delete", "Whether it goes with its last user.", default="false")
_IF_UNUSED = Parameter("if-unused", "Only if nothing uses it.", default="false")
_VERIFY_TOKEN = Parameter("hub.verify_token", "A token made by generate_token.")

_TOKEN_ACTIONS = (
    Action(
        "generate_token",
        "GET",
        "Makes a token that lets a subscribe bind this resource.",
        "generate_token",
        (Parameter("hub.intended_use", "subscribe or unsubscribe"),),
    ),
    *(
        Action(
            f"verify_{mode}",
            "GET",
            "Answers the challenge of another hub.",
            mode,
            (_VERIFY_TOKEN, Parameter("hub.challenge", "Echoed as the body.")),
        )
        for mode in ("subscribe", "unsubscribe")
    ),
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
                Parameter("internal", "Whether nobody can publish to it.", default="false"),
                _ARGUMENT,
            ),
        ),
        Action("destroy", "DELETE", "Deletes the exchange.", parameters=(_IF_UNUSED,)),
        Action(
            "deliver", "POST", "Publishes the body.",
            parameters=(_TOPIC, _PERSIST, _PROPERTY, _MANDATORY),
        ),
        *_TOKEN_ACTIONS,
    ),
)  # fmt: skip
_QUEUE_ENDPOINT = Facet(
    "endpoint",
    "Messages are put into the queue here.",
    (
        _INFO,
        Action("create", "PUT", "Declares the queue.",
               parameters=(_DURABLE, _AUTO_DELETE, _ARGUMENT)),
        Action(
            "destroy", "DELETE", "Deletes the queue.",
            parameters=(_IF_UNUSED, Parameter("if-empty", "Only if empty.", default="false")),
        ),
        Action("deliver", "POST", "Puts the body into the queue.",
               parameters=(_TOPIC, _PERSIST, _PROPERTY)),
        *_TOKEN_ACTIONS,
    ),
)  # fmt: skip

_IDENTITY = (
    Parameter("hub.callback", "URL that messages are posted to.", "body"),
    Parameter("hub.topic", "Binding key; for a queue only a label.", "body"),
)
_VERIFY = (
    Parameter("hub.verify", "sync or async", "body", "sync"),
    Parameter("hub.verify_token", "Echoed to the callback.", "body", ""),
)
_SUBSCRIBE = Facet(
    "subscribe",
    "Callbacks are subscribed here.",
    (
        _INFO,
        Action(
            "subscribe", "POST", "Subscribes a callback once it has confirmed.", "subscribe",
            (
                *_IDENTITY,
                *_VERIFY,
                Parameter("hub.lease_seconds", "How long.", "body", "2592000"),
                Parameter("hub.secret", "Signs the deliveries.", "body", ""),
            ),
        ),
        Action("unsubscribe", "POST", "Ends a subscription.", "unsubscribe",
               (*_IDENTITY, *_VERIFY)),
        Action("remove", "DELETE", "Ends a subscription without asking its callback.",
               parameters=_IDENTITY),
    ),
)  # fmt: skip

FACETS = {
    ("endpoint", "x"): _EXCHANGE_ENDPOINT,
    ("endpoint", "q"): _QUEUE_ENDPOINT,
    ("subscribe", "x"): _SUBSCRIBE,
    ("subscribe", "q"): _SUBSCRIBE,
}
