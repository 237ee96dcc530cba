"""The bodies and parameters of requests, for `/openapi.json`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, get_args

from ..core.resources.limits import USER_LIMITS, VHOST_LIMITS
from ..core.route.registry import exchange_types
from ..hub.attempts.attempt import AttemptOutcome
from ..hub.feeds.health import Health
from ..hub.outputs.definition import Definition, TransformStep
from ..hub.results.row import SHAPES
from ..hub.transactions.rows import MEDIA_TYPE as ROWS
from ..hub.upstream.upstream import CALLBACK_PATH
from .documents import request_examples, requests
from .overview.trouble import TROUBLES
from .requests.forms import FORM
from .requests.paths import CAPABILITY_PATH, TUNNELS_PATH
from .responses.facets import Parameter
from .routes.api.audit import ACTIONS
from .routes.api.feed_json import ORDERS
from .routes.api.message_stats import MAX_AGE_S
from .routes.api.messages import MAX_BYTES
from .routes.api.router import TABLES
from .routes.metrics import FAMILIES
from .subscriptions.condition import Condition
from .subscriptions.filter import SORTS

Schema = dict[str, Any]
TEXT: Final[Schema] = {"type": "string"}
_FLAG: Final[Schema] = {"type": "boolean"}
_TIME: Final[Schema] = {**TEXT, "format": "date-time"}
_SUFFIX = ".NAME"


def _enum(*words: str) -> Schema:
    return {**TEXT, "enum": list(words)}


def _whole(low: int = 0, high: int = 2**63 - 1) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high}


def _given(member: str, **others: Schema) -> Schema:
    """Returns what holds if a member is given, and not null."""
    return {"required": [member], "properties": {member: {"not": {"type": "null"}}, **others}}


SCHEMAS: Final[Mapping[str, Schema]] = {
    "page": _whole(1, 2**31 - 1),
    "page_size": _whole(1, 500),
    "status": _enum("active", "inactive"),
    "resource_type": _enum("exchange", "queue"),
    "condition": _enum(*get_args(Condition)),
    "outcome": _enum(*AttemptOutcome),
    "limit": _whole(1, 1_000),
    "before": _whole(),
    "min_age_s": {"type": "number", "minimum": 0},
    "max_age_s": {"type": "number", "minimum": 0},
    "hub.expires": _whole(1, 36_500),
    "state": _enum(*Health),
    "trouble": _enum(*TROUBLES),
    "durable": _FLAG,
    "auto_delete": _FLAG,
    "internal": _FLAG,
    "if-unused": _FLAG,
    "if-empty": _FLAG,
    "amqp.mandatory": _FLAG,
    "skip_damaged": _FLAG,
    "hub.persistmsg": _enum("0", "1", "false", "true"),
    "source": _enum("queue", "exchange"),
    "start": _whole(),
    "end": _whole(),
    "max_bytes": _whole(1),
    "count": _whole(1, 250),
    "truncate": _whole(0, MAX_BYTES),
    "encoding": _enum("auto", "base64"),
    "ack": _enum("auto", "manual"),
    "prefetch": _whole(1, 1_000),
    "wait_s": _whole(0, 60),
    "mode": _enum("read", "publish"),
    "history_s": _whole(0, 86_400),
    **{
        f"{kind}_{end}": _whole(1, MAX_AGE_S)
        for kind in ("lengths", "msg_rates", "data_rates", "node_stats")
        for end in ("age", "incr")
    },
    "since": _TIME,
    "until": _TIME,
    "action": _enum(*ACTIONS),
    "job": _enum(*SHAPES),
    "family": _enum(*FAMILIES),
    "amqp.exchange_type": _enum(*exchange_types),
    "block_s": _whole(0, 30 * 86_400),
}
"""The values of a parameter in the query; of those that are not here, any text."""
REQUIRED: Final = frozenset({("/api/hub/pipeline/results", "job")})
"""Parameters of a query that may not be left out."""
_SUBSCRIPTIONS: Final = (
    "/subscriptions", "/subscriptions/errors", "/api/hub/subscriptions", "/api/hub/errors",
)  # fmt: skip
_ATTEMPTS: Final = (
    "/api/hub/attempts", "/api/hub/attempts/counts", "/api/hub/subscriptions/{id}/attempts",
)  # fmt: skip
_ATTEMPT_STATUS: Final[Schema] = {**TEXT, "pattern": "^([1-5]xx|none|[1-5][0-9][0-9])$"}
_OF_PATHS: Final[Mapping[tuple[str, str], Schema]] = {
    **{
        key: found
        for path, words in {
            **dict.fromkeys(_SUBSCRIPTIONS, SORTS),
            "/api/hub/feeds": ORDERS,
        }.items()
        for key, found in {
            (path, "sort"): _enum(*words),
            (path, "sort_reverse"): _enum("true", "false"),
        }.items()
    },
    ("/api/hub/pipeline/results", "from"): _TIME,
    **{
        key: found
        for path in _ATTEMPTS
        for key, found in {(path, "status"): _ATTEMPT_STATUS, (path, "source"): TEXT}.items()
    },
    ("/api/hub/pipeline/results", "step"): _enum("hour", "day"),
    ("/api/hub/pipeline/results", "top"): _whole(1, 50),
}
"""Parameters whose values differ from those of the same name elsewhere."""
_NAME: Final[Schema] = {**TEXT, "pattern": "^[^\\r\\n\\u0000]*$"}
PATH_SCHEMAS: Final[Mapping[str, Schema]] = {
    "type": _enum("x", "q", "exchange", "queue"),
    "within": _whole(0, 10_000),
    "unit": _enum("days", "weeks", "months", "years"),
    "number": _whole(),
    "partition": _whole(),
    "piece": _whole(),
}
"""The segments of paths that are no names."""
_LIMITS: Final[Mapping[str, Schema]] = {
    "/api/vhost-limits/{vhost}/{limit}": _enum(*VHOST_LIMITS),
    "/api/user-limits/{user}/{limit}": _enum(*USER_LIMITS),
}

MESSAGE: Final = ("application/octet-stream", "application/json", "text/plain")
"""The body of a message, of whatever type; it may be empty."""

_OF_API: Final = {
    f"/api{path}": {
        method.lower(): one.body for method, one in methods.items() if one.body is not None
    }
    for table in TABLES
    for path, methods in table.items()
}
BODIES: Final[Mapping[str, Mapping[str, Any]]] = {
    **{path: bodies for path, bodies in _OF_API.items() if bodies},
    "/subscriptions": {"post": requests.Subscriptions},
    **{
        f"{vhost}/endpoint/{letter}/{{name}}": {"post": MESSAGE}
        for vhost in ("", "/{vhost}")
        for letter in "xq"
    },
    CAPABILITY_PATH + "{secret}": {"post": MESSAGE},
    CALLBACK_PATH + "{secret}": {"post": MESSAGE},
    TUNNELS_PATH + "/{label}/{token}/{request}": {"post": ("message/http",)},
    "/transactions/{query}/{number}": {"post": requests.TransactionCommit},
    "/transactions/{query}/{number}/{partition}/{attempt}/{piece}": {"put": (ROWS,)},
}
"""A type of `documents`, or the media types of a body that is not JSON. Other operations take none,
or a form that their parameters describe."""
EXAMPLES: Final[Mapping[Any, Any]] = {
    **request_examples.EXAMPLES,
    Definition: {
        "title": "Weather", "sources": [{"feed": "blog"}, {"exchange": "news"}],
        "filter": {"words": {"any": ["rain", "storm"]}},
    },
}  # fmt: skip
"""A body of each of these types."""
_SCOPES: Final = {
    "read": {"vhost": TEXT}, "write": {"vhost": TEXT}, "tunnel": {},
    "manage": {"path": TEXT, "vhost": {}},
}  # fmt: skip
"""The kinds of scopes of tokens, with what else each may have."""
CONDITIONS: Final[Mapping[str, Schema]] = {
    "MoveRequest": {"oneOf": [{"required": ["queue"]}, {"required": ["exchange"]}]},
    "UserRequest": {"not": {"required": ["password", "password_hash"]}},
    "OutputSourceRequest": {
        "oneOf": [
            _given("exchange"),
            *(_given(one, routing_key={"type": "null"}) for one in ("feed", "stream")),
        ]
    },
    "TransformStepRequest": {"oneOf": [_given(one) for one in TransformStep.__struct_fields__]},
    "RenameRequest": {"anyOf": [_given("categories"), _given("authors")]},
    "ScopeRequest": {
        "oneOf": [
            {"required": [one], "properties": {one: TEXT, **others}, "additionalProperties": False}
            for one, others in _SCOPES.items()
        ]
    },
}
"""The conditions on several members of a body."""
OPTIONAL: Final = (
    requests.Vhost, requests.Binding, requests.Exchange, requests.Queue, requests.DeadLetters,
    requests.DeletedLetters, requests.SubscriptionChange, requests.Test, requests.Resend,
    requests.StreamRead, MESSAGE,
)  # fmt: skip
"""Bodies that may be left out."""


def path_names(path: str) -> list[Schema]:
    """Returns the descriptions of the parameters in a path."""
    found = re.findall(r"\{(\w+)\}", path)
    return [
        {"name": name, "in": "path", "required": True, "schema": _segment(path, name)}
        for name in found
    ]


def _segment(path: str, name: str) -> Schema:
    limit = _LIMITS.get(path) if name == "limit" else None
    return limit or PATH_SCHEMAS.get(name, _NAME)


def query(name: str, path: str = "") -> Schema:
    """Returns the description of a parameter of a query."""
    schema = _OF_PATHS.get((path, name)) or SCHEMAS.get(name, TEXT)
    found = {"name": name, "in": "query", "schema": schema}
    return {**found, "required": True} if (path, name) in REQUIRED else found


def parameter(described: Parameter, path: str, *, is_required: bool) -> Schema:
    """Returns the description of a parameter of RabbitHub's paths."""
    found = {**query(described.name, path), "description": described.description}
    return {**found, "required": True} if is_required else found


def is_one(described: Parameter) -> bool:
    """Returns whether it is one parameter, and does not stand for many, as `arg.NAME`."""
    return not described.name.endswith(_SUFFIX)


def form(fields: Schema, required: list[str]) -> Schema:
    """Returns a body that is a form."""
    kind = {"type": "object", "properties": fields, "required": required}
    return {"required": True, "content": {FORM: {"schema": kind}}}
