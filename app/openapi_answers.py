"""The response documents of each operation, by path and method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..hub.upstream.upstream import CALLBACK_PATH
from . import documents as of
from .facets import LISTING_NAMES
from .paths import CAPABILITY_PATH
from .routes.api.hub_attempts import QUERY as ATTEMPTS_QUERY
from .routes.api.hub_dead_letters import QUERY as DEAD_LETTERS_QUERY
from .subscription_filter import PAGING

Answers = Mapping[int, Any]
"""By status: a type of `documents`, the media types if it is not JSON, or None for no body."""

PLAIN_TEXT = ("text/plain",)
_GONE: Answers = {204: None}
_SET: Answers = {201: None, 204: None}
_DESCRIPTIONS: Answers = {200: of.Description}
_SUBSCRIPTIONS: Answers = {200: of.Subscriptions}
_ENDPOINT: Mapping[str, Answers] = {
    "get": _DESCRIPTIONS,
    "put": {201: of.Declared, 204: None},
    "post": {202: of.Published},
    "delete": _GONE,
}
_SUBSCRIBE: Mapping[str, Answers] = {
    "get": _DESCRIPTIONS,
    "post": {200: of.Subscribed, 202: of.Subscribed, 204: None},
    "delete": {200: of.Removed},
}
OTHER_MEDIA_TYPES: Mapping[str, tuple[str, ...]] = {
    "Description": (
        "text/xml", "application/xml", "text/html", "application/x-www-form-urlencoded",
        "text/plain",
    ),
}  # fmt: skip
"""GET of an endpoint returns a description, a token, or the challenge."""


QUERIES: Mapping[str, tuple[str, ...]] = {
    "/api/hub/subscriptions": LISTING_NAMES,
    "/api/hub/errors": LISTING_NAMES,
    "/api/hub/attempts": ATTEMPTS_QUERY,
    "/api/hub/subscriptions/{id}/attempts": ATTEMPTS_QUERY,
    "/api/hub/dead-letters": DEAD_LETTERS_QUERY,
    "/api/hub/topics": PAGING,
}
"""Query parameters of GET below `/api`."""

ANSWERS: Mapping[str, Mapping[str, Answers]] = {
    "/": {"get": {200: PLAIN_TEXT}},
    "/static/{file}": {"get": {200: ("text/css", "text/html", "application/xslt+xml"), 304: None}},
    "/health/live": {"get": {200: of.Liveness}},
    "/health/ready": {"get": {200: of.Readiness, 503: of.Readiness}},
    "/openapi.json": {"get": {200: dict[str, Any]}},
    "/hub": {
        "get": {200: ("text/plain", "text/html")},
        "post": {202: of.Subscribed, 204: None, 308: None},
    },
    "/subscriptions": {"get": _SUBSCRIPTIONS, "post": {202: of.Imported}},
    "/subscriptions/errors": {"get": {200: of.FailingOnes}},
    CAPABILITY_PATH + "{secret}": {
        "get": {200: PLAIN_TEXT, 204: None}, "post": {202: of.Published},
    },
    CALLBACK_PATH + "{secret}": {"get": {200: PLAIN_TEXT, 204: None}, "post": {202: None}},
    **{
        f"{vhost}/{facet}/{letter}/{{name}}": answers
        for vhost in ("", "/{vhost}")
        for letter in "xq"
        for facet, answers in (
            ("endpoint", _ENDPOINT),
            ("subscribe", _SUBSCRIBE),
            ("subscriptions", {"get": _SUBSCRIPTIONS}),
        )
    },
    "/api/whoami": {"get": {200: of.Whoami}},
    "/api/vhosts": {"get": {200: list[of.VirtualHost]}},
    "/api/vhosts/{vhost}": {"get": {200: of.VirtualHost}, "put": _SET, "delete": _GONE},
    "/api/vhosts/{vhost}/deletion/protection": {"post": _GONE, "delete": _GONE},
    "/api/vhosts/{vhost}/permissions": {"get": {200: list[of.Permission]}},
    "/api/vhosts/{vhost}/topic-permissions": {"get": {200: list[of.TopicPermission]}},
    "/api/users": {"get": {200: list[of.User]}},
    "/api/users/without-permissions": {"get": {200: list[of.User]}},
    "/api/users/bulk-delete": {"post": _GONE},
    "/api/users/{user}": {"get": {200: of.User}, "put": _SET, "delete": _GONE},
    "/api/users/{user}/permissions": {"get": {200: list[of.Permission]}},
    "/api/users/{user}/topic-permissions": {"get": {200: list[of.TopicPermission]}},
    "/api/permissions": {"get": {200: list[of.Permission]}},
    "/api/permissions/{vhost}/{user}": {
        "get": {200: of.Permission}, "put": _SET, "delete": _GONE,
    },
    "/api/topic-permissions": {"get": {200: list[of.TopicPermission]}},
    "/api/topic-permissions/{vhost}/{user}": {
        "get": {200: list[of.TopicPermission]}, "put": _SET, "delete": _GONE,
    },
    "/api/topic-permissions/{vhost}/{user}/{exchange}": {
        "get": {200: list[of.TopicPermission]}, "delete": _GONE,
    },
    **{
        path: answers
        for sort in ("policies", "operator-policies")
        for path, answers in (
            (f"/api/{sort}", {"get": {200: list[of.Policy]}}),
            (f"/api/{sort}/{{vhost}}", {"get": {200: list[of.Policy]}}),
            (
                f"/api/{sort}/{{vhost}}/{{policy}}",
                {"get": {200: of.Policy}, "put": _SET, "delete": _GONE},
            ),
        )
    },
    "/api/vhost-limits": {"get": {200: list[of.VirtualHostLimits]}},
    "/api/vhost-limits/{vhost}": {"get": {200: list[of.VirtualHostLimits]}},
    "/api/vhost-limits/{vhost}/{limit}": {"put": _SET, "delete": _GONE},
    "/api/user-limits": {"get": {200: list[of.UserLimits]}},
    "/api/user-limits/{user}": {"get": {200: list[of.UserLimits]}},
    "/api/user-limits/{user}/{limit}": {"put": _SET, "delete": _GONE},
    "/api/health/checks/storage": {"get": {200: of.Check, 503: of.Check}},
    "/api/warren/quarantine": {"get": {200: of.Quarantine}},
    "/api/hub/capabilities": {
        "get": {200: list[of.Capability]}, "post": {201: of.MadeCapability},
    },
    "/api/hub/capabilities/{id}": {"get": {200: of.Capability}, "delete": _GONE},
    "/api/hub/upstreams": {"get": {200: list[of.Upstream]}},
    "/api/hub/upstreams/{vhost}": {"get": {200: list[of.Upstream]}},
    "/api/hub/upstreams/{vhost}/{name}": {
        "get": {200: of.Upstream}, "put": _SET, "delete": _GONE,
    },
    "/api/hub/subscriptions": {"get": _SUBSCRIPTIONS, "post": _SET},
    "/api/hub/subscriptions/batch": {"post": {202: of.Imported}},
    "/api/hub/subscriptions/{id}": {"get": {200: of.Subscription}, "delete": _GONE},
    "/api/hub/subscriptions/{id}/attempts": {"get": {200: of.Attempts}},
    **{
        f"/api/hub/subscriptions/{{id}}/{verb}": {"post": {200: of.Subscription}}
        for verb in ("pause", "resume", "renew")
    },
    "/api/hub/subscriptions/{vhost}/{type}/{name}/{topic}/{callback}": {
        "get": _SUBSCRIPTIONS, "put": _SET, "delete": _GONE,
    },
    "/api/hub/consumers": {"get": {200: of.Consumers}},
    "/api/hub/errors": {"get": {200: of.FailingOnes}},
    "/api/hub/environment": {"get": {200: of.Environment}},
    "/api/hub/topics": {"get": {200: list[of.Topic] | of.TopicPage}},
    "/api/hub/topics/ping": {"post": _GONE},
    "/api/hub/attempts": {"get": {200: of.Attempts}},
    "/api/hub/dead-letters": {"get": {200: of.DeadLetters}},
    "/api/hub/dead-letters/replay": {"post": {200: of.Replayed}},
    "/api/hub/dead-letters/delete": {"post": {200: of.Deleted}},
    "/api/hub/dead-letters/{vhost}/{id}": {
        "get": {200: of.WholeDeadLetter}, "delete": _GONE,
    },
    "/api/hub/dead-letters/{vhost}/{id}/replay": {"post": _GONE},
}  # fmt: skip
