"""The response documents of each operation, by path and method.

Those below `/api` stand in the tables of their routes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..hub.formats.media_types import MEDIA_TYPES
from ..hub.upstream.upstream import CALLBACK_PATH
from .documents import common, hub, pipeline, rabbithub
from .requests.paths import CAPABILITY_PATH, FOLDERS, TUNNELS_PATH
from .routes.api.route import GONE, Answers
from .routes.api.router import TABLES
from .routes.stream import NDJSON, SSE
from .routes.streams import ARROW, CHUNKS

PLAIN_TEXT = ("text/plain",)
_DESCRIPTIONS: Answers = {200: rabbithub.Description}
_SUBSCRIPTIONS: Answers = {200: rabbithub.Subscriptions}
_ENDPOINT: Mapping[str, Answers] = {
    "get": _DESCRIPTIONS,
    "put": {201: rabbithub.Declared, 204: None},
    "post": {202: rabbithub.Published},
    "delete": GONE,
}
_SUBSCRIBE: Mapping[str, Answers] = {
    "get": _DESCRIPTIONS,
    "post": {200: rabbithub.Subscribed, 202: rabbithub.Subscribed, 204: None},
    "delete": {200: rabbithub.Removed},
}
OTHER_MEDIA_TYPES: Mapping[str, tuple[str, ...]] = {
    "Description": (
        "text/xml", "application/xml", "text/html", "application/x-www-form-urlencoded",
        "text/plain",
    ),
}  # fmt: skip
"""GET of an endpoint returns a description, a token, or the challenge."""

ANSWERS: Mapping[str, Mapping[str, Answers]] = {
    "/": {"get": {200: (*PLAIN_TEXT, "text/html"), 304: None}},
    "/ui/{file}": {
        "get": {200: ("text/html", "text/javascript", "text/css", "image/svg+xml"), 304: None}
    },
    "/static/{file}": {"get": {200: ("text/css", "text/html", "application/xslt+xml"), 304: None}},
    "/js/{file}": {"get": {200: ("text/javascript",), 304: None}},
    "/demos/": {"get": {200: ("text/html",)}},
    "/demos/{file}": {"get": {200: ("text/html", "text/javascript", "text/css"), 304: None}},
    "/docs/": {"get": {200: ("text/html",), 304: None}},
    **{path: {"get": {307: None}} for path in FOLDERS},
    "/docs/{page}": {"get": {200: ("text/html", "text/markdown"), 304: None}},
    "/docs/api/": {"get": {200: ("text/html",), 304: None}},
    "/docs/api/{file}": {"get": {200: ("text/html", "text/javascript", "text/css"), 304: None}},
    "/health/live": {"get": {200: common.Liveness}},
    "/health/ready": {"get": {200: common.Readiness, 503: common.Readiness}},
    "/openapi.json": {"get": {200: dict[str, Any]}},
    **{
        path: {"get": {200: ("text/plain", "application/openmetrics-text")}}
        for path in ("/metrics", "/metrics/per-object", "/metrics/detailed")
    },
    "/hub": {
        "get": {200: ("text/plain", "text/html")},
        "post": {202: rabbithub.Subscribed, 204: None, 308: None},
    },
    "/subscriptions": {"get": _SUBSCRIPTIONS, "post": {202: rabbithub.Imported}},
    "/subscriptions/errors": {"get": {200: rabbithub.FailingOnes}},
    **{
        f"{vhost}/feeds/{{name}}.{{format}}": {
            "get": {200: tuple(one.partition(";")[0] for one in MEDIA_TYPES.values()), 304: None}
        }
        for vhost in ("", "/{vhost}")
    },
    **{
        f"/streams/{{vhost}}/{letter}{{name}}/{what}": {"get": found}
        for letter in ("", "x/", "q/")
        for what, found in (
            ("offsets", {200: pipeline.StreamOffsets}),
            ("chunks", {200: (CHUNKS, ARROW), 206: (CHUNKS,), 304: None}),
        )
    },
    "/transactions/{query}": {"delete": GONE},
    "/transactions/{query}/{number}": {
        "post": {200: pipeline.TransactionCommitted}, "delete": {204: None},
    },
    "/transactions/{query}/{number}/{partition}/{attempt}/{piece}": {"put": {201: pipeline.Staged}},
    CAPABILITY_PATH + "{secret}": {
        "get": {200: PLAIN_TEXT, 204: None}, "post": {202: rabbithub.Published},
    },
    TUNNELS_PATH: {
        "get": {200: hub.EnrolledTunnels, 303: None}, "post": {201: None, 204: None},
    },
    TUNNELS_PATH + "/{label}/{token}": {
        "get": {200: ("application/x-www-form-urlencoded",)},
        "put": GONE,
        "post": {200: ("message/http",), 204: None},
        "delete": GONE,
    },
    TUNNELS_PATH + "/{label}/{token}/{request}": {
        "get": {
            200: ("message/http", "text/event-stream", "application/http"), 204: None,
        }, "post": {202: None},
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
            ("stream", {"get": {200: (SSE, NDJSON, "application/json"), 204: None}}),
        )
    },
    **{
        f"/api{path}": {method.lower(): one.answers for method, one in methods.items()}
        for table in TABLES
        for path, methods in table.items()
    },
}  # fmt: skip
