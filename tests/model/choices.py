"""What a test chooses from: names that meet often, values at the edges."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st

from .operations import Policy

Draw = Callable[[st.SearchStrategy[Any]], Any]
chosen: Callable[[tuple[Any, ...]], st.SearchStrategy[Any]] = cache(st.sampled_from)
"""For values that can be hashed: a strategy is made once, which takes longer than to draw."""

SEATS = ((0, 1), (0, 1), (0, 2), (1, 1))
QUEUES = ("q0", "q1", "q2", "q3", "q4")
OWN_EXCHANGES = ("e0", "e1", "e2")
PREDECLARED = ("amq.direct", "amq.fanout", "amq.topic", "amq.headers")
TYPES = ("direct", "fanout", "topic", "headers")
KEYS = ("a", "a.b", "a.x.c.y", "b.c", "", *QUEUES[:3])
PATTERNS = ("#", "*", "a.*", "a.#", "#.c.#", "a.*.c.#", "*.b", "#.#", "", "a", "a.b", "q0")
HEADERS: tuple[dict[str, Any], ...] = (
    {}, {}, {"h": 1}, {"h": 2, "k": "v"}, {"h": 1, "x-h": 5}, {"k": "v"}, {"x-h": 5}, {"h": True},
)  # fmt: skip
CRITERIA: tuple[dict[str, Any], ...] = (
    {}, {"h": 1}, {"x-match": "any", "h": 1, "k": "v"}, {"x-match": "all", "h": None},
    {"x-match": "any"}, {"x-match": "all-with-x", "x-h": 5}, {"x-match": "any-with-x", "x-h": 5},
    {"h": 1, "x-h": 6},
)  # fmt: skip
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "x-message-ttl": (0, 37, 37, 1_013),
    "x-expires": (55, 5_012),
    "x-max-length": (0, 1, 3, 3),
    "x-max-length-bytes": (0, 20, 60),
    "x-max-priority": (1, 5, 10),
    "x-single-active-consumer": (True, True, False),
    "x-overflow": ("drop-head", "reject-publish", "reject-publish-dlx"),
    "x-dead-letter-exchange": ("", "", "", "e0", "amq.fanout", "amq.topic", "missing"),
}
BAD_ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"x-message-ttl": -1}, {"x-message-ttl": "5"}, {"x-expires": 0}, {"x-max-length": -1},
    {"x-overflow": "explode"}, {"x-dead-letter-routing-key": "k"}, {"x-message-ttl": 2**40},
)  # fmt: skip
BAD_PROPERTIES: tuple[dict[str, Any], ...] = (
    {}, {"expiration": "abc"}, {"user_id": "other"}, {"user_id": "guest"}, {"expiration": ""},
    {"headers": {"CC": "a"}}, {"headers": {"BCC": 5}},
)  # fmt: skip
BEGINNINGS: tuple[dict[str, dict[str, Any]], ...] = (
    {"q0": {}, "q1": {}, "q2": {}},
    {
        "q0": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q1"},
        "q1": {
            "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q0", "x-message-ttl": 37,
        },
        "q2": {"x-dead-letter-exchange": "amq.fanout"},
    },
    {
        "q0": {"x-max-length": 3, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q2"},
        "q1": {"x-max-length-bytes": 60, "x-overflow": "reject-publish"},
        "q2": {},
    },
    {
        "q0": {"x-message-ttl": 0, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q2"},
        "q1": {"x-max-length": 1, "x-overflow": "reject-publish-dlx", "x-dead-letter-exchange": "",
               "x-dead-letter-routing-key": "q2"},
        "q2": {"x-dead-letter-exchange": "amq.topic"},
    },
    {
        "q0": {"x-max-priority": 5, "x-single-active-consumer": True},
        "q1": {"x-max-priority": 10, "x-max-length": 3},
        "q2": {"x-single-active-consumer": True},
    },
)  # fmt: skip
OWN_BEGINNINGS: tuple[dict[str, dict[str, Any]], ...] = (
    {
        "q0": {"x-delivery-limit": 1, "x-dead-letter-exchange": "",
               "x-dead-letter-routing-key": "q2"},
        "q1": {"x-queue-type": "quorum", "x-delivery-limit": 2, "x-dead-letter-exchange": "",
               "x-dead-letter-routing-key": "q2"},
        "q2": {"x-queue-type": "quorum"},
    },
)  # fmt: skip
"""With what RabbitMQ 3.10 does otherwise."""
SPECIAL: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "one": (
        ("x-random", {}), ("x-consistent-hash", {}), ("x-modulus-hash", {}),
        ("x-consistent-hash", {"hash-header": "h"}),
    ),
    "late": tuple(("x-delayed-message", {"x-delayed-type": kind}) for kind in TYPES),
    "past": (("x-recent-history", {"x-recent-history-length": 2}),),
    "keep": tuple((kind, {"x-persist-messages": 3}) for kind in TYPES[:3]),
}  # fmt: skip
"""Exchanges that choose, wait or remember, each under its name."""
WEIGHTS = ("1", "2", "10", "0", "x", "10001")
DELAYS = (105, 713, 0, -5)
POLICY_KEYS: dict[str, tuple[Any, ...]] = {
    "message-ttl": (37, 1_013),
    "expires": (55, 5_012),
    "max-length": (1, 2, 4),
    "max-length-bytes": (20, 60),
    "overflow": ("drop-head", "reject-publish"),
    "dead-letter-exchange": ("", "amq.fanout"),
    "dead-letter-routing-key": ("q1", "q2"),
    "alternate-exchange": ("amq.fanout", "e0"),
}
PATTERNS_OF_NAMES = ("^q0$", "^q[01]$", ".*", "^e", "2")
POLICIES = {"p0": 0, "p1": 7}
"""Names and priorities."""
TTLS = (None, None, None, "0", "19", "19", "499", "9999999")

COMMON = {
    "publish": 24, "get": 8, "consume": 8, "settle": 16, "qos": 3, "cancel": 2, "recover": 1,
    "declare_queue": 3, "declare_exchange": 3, "bind_queue": 5, "bind_exchange": 2,
    "delete_queue": 1, "delete_exchange": 1, "purge": 1, "look": 1, "look_exchange": 1,
    "declare_badly": 1, "publish_badly": 1, "choose_mode": 2, "close_channel": 2, "drop": 1,
    "set_policy": 2, "clear_policy": 1, "declare_unnamed": 1,
}  # fmt: skip
MORE: tuple[dict[str, int], ...] = (
    {},
    {"settle": 20, "consume": 10},
    {"choose_mode": 20, "settle": 10},
    {"declare_exchange": 10, "bind_queue": 20, "bind_exchange": 8},
    {"set_policy": 12, "clear_policy": 4},
    {"declare_queue": 20, "delete_queue": 4, "close_channel": 6, "drop": 6},
)
"""What some runs do more of."""


def weighted(weights: dict[str, int]) -> st.SearchStrategy[str]:
    return chosen(tuple(name for name, weight in weights.items() for _ in range(weight)))


@st.composite
def queue_arguments(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(chosen(tuple(sorted(ARGUMENTS))), max_size=3, unique=True))
    arguments = {name: draw(chosen(ARGUMENTS[name])) for name in names}
    if "x-dead-letter-exchange" in arguments and draw(st.booleans()):
        arguments["x-dead-letter-routing-key"] = draw(chosen(("q0", "q1", "q2", "a.b")))
    return arguments


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    name = draw(chosen(tuple(sorted(POLICIES))))
    keys = draw(st.lists(chosen(tuple(sorted(POLICY_KEYS))), min_size=1, max_size=3, unique=True))
    definition = {key: draw(chosen(POLICY_KEYS[key])) for key in keys}
    kinds = [draw(chosen(("all", "queues", "exchanges")))]
    if set(keys) == {"alternate-exchange"}:
        kinds = ["exchanges"]
    pattern = draw(chosen(PATTERNS_OF_NAMES))
    return Policy(name, pattern, definition, POLICIES[name], kinds[0])


SOME_HEADERS = st.sampled_from(HEADERS)
SOME_KEYS = st.lists(chosen(KEYS), max_size=2)


@st.composite
def properties(draw: st.DrawFn) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if draw(st.booleans()):
        found["delivery_mode"] = draw(chosen((2, 2, 1)))
    ttl = draw(chosen(TTLS))
    if ttl is not None:
        found["expiration"] = ttl
    headers: dict[str, Any] = dict(draw(SOME_HEADERS))
    if draw(st.integers(0, 9)) == 9:
        headers[draw(chosen(("CC", "BCC")))] = draw(SOME_KEYS)
    if headers:
        found["headers"] = headers
    if draw(st.integers(0, 3)) == 3:
        found["priority"] = draw(chosen((0, 1, 2, 9)))
    return found


PROPERTIES = properties()
TARGETS = st.one_of(
    st.tuples(st.just(""), chosen(QUEUES[:3])),
    st.tuples(st.just("amq.fanout"), chosen(KEYS)),
    st.tuples(st.just(""), chosen(KEYS)),
    st.tuples(chosen((*OWN_EXCHANGES, *PREDECLARED)), chosen(KEYS)),
)
"""Exchanges and keys."""


@st.composite
def publishes(draw: st.DrawFn) -> dict[str, Any]:
    """All of a publish but its body, whose size is given."""
    exchange, key = draw(TARGETS)
    return {
        "exchange": exchange,
        "key": key,
        "properties": draw(PROPERTIES),
        "size": draw(chosen((0, 1, 30))),
        "mandatory": draw(st.integers(0, 3)) == 3,
        "immediate": draw(st.integers(0, 9)) == 9,
    }


QUEUE_ARGUMENTS, SOME_POLICIES, A_PUBLISH = queue_arguments(), policies(), publishes()
SOME_PUBLISHES = st.lists(A_PUBLISH, min_size=1, max_size=4)
