"""docs/reference/headers.md: the header fields of requests, answers and deliveries.

What a field means is said here; that the code has each of them, and no other of its own, is checked
when the page is written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .tables import code, page, table

ROOT: Final = Path(__file__).parents[2]
INTRODUCTION = """HTTP header fields with a meaning in Warren, except those that every server \
uses (`Content-Length`, `Date`, `Host`). Names are case-insensitive."""

PUBLISHING: Final = {
    "Content-Type": "the message's content type; `application/x-www-form-urlencoded`, the default "
    "of `curl`, counts as none",
    "Content-Encoding": "the message's content encoding; the body is stored as it is",
    "X-Amqp-NAME": "a basic property, with dashes for underscores: `X-Amqp-Correlation-Id`. "
    "`amqp.NAME` in the query takes precedence",
    "X-Amqp-Header-NAME": "a header of the message",
    "X-RabbitHub-Msg_Header": "headers of the message together, as in RabbitHub: `k=v,k2=v2`",
    "ce-NAME": "an attribute of a CloudEvent (binary mode); `ce-id` makes it an event",
    "traceparent": "W3C Trace Context, passed on to consumers and callbacks",
    "tracestate": "the same",
    "X-Hub-Hops": "how many hubs the message has passed; more than `WARREN_MAX_HOPS` is a loop",
}
REQUESTS: Final = {
    "Authorization": "`Basic` with user and password, or `Bearer` with a token",
    "Cookie": "the session of a browser that has logged in at `/api/warren/login`",
    "X-CSRF-Token": "the token of such a session, needed for each change",
    "Accept": "`application/json` gives publish and subscribe a body, `text/html` pages of errors; "
    "chooses the format of `/stream` and of `/metrics`",
    "If-None-Match": "304 if the document has this `ETag`",
    "If-Modified-Since": "the same by its `Last-Modified`, for feeds",
    "Last-Event-ID": "continues a live stream, or the tail of the log, after this cursor",
    "X-Request-ID": "the id of the request in the log and in the response",
    "X-Reason": "why a connection is closed, with `DELETE /api/connections/NAME`",
    "Origin": "of pages of other sites: must be in `WARREN_CORS_ORIGINS`",
    "X-Forwarded-For": "the client's address; only from the proxies in `WARREN_HTTP_PROXIES`",
    "Forwarded": "the same (RFC 7239); if both are present, they must agree",
    "X-Forwarded-Proto": "`https`: cookies are for HTTPS only; only from these proxies",
    "X-Forwarded-Host": "a name of this server for pages behind such a proxy",
    "X-Real-IP": "with this field, one of the last four or `Via`, `guest` is refused, since "
    "proxies add them",
}
ANSWERS: Final = {
    "Retry-After": "seconds to wait before the next try, with 429, 503 and 507",
    "WWW-Authenticate": "which credentials are accepted, with 401",
    "Location": "the URL of the new object, or the target of a redirect",
    "Link": '`rel="hub"` and `rel="self"` of a topic, so that WebSub subscribers find the hub',
    "ETag": "the version of a document, for `If-None-Match`",
    "Allow": "the methods of a path, with 405",
    "Vary": "the request fields on which the response depends",
    "Set-Cookie": "the session of a browser",
    "X-Request-ID": "the id of the request, as in the log",
    "X-Accel-Buffering": "`no`: tells nginx not to buffer a live stream",
    "X-Content-Type-Options": "`nosniff`",
}
DELIVERIES: Final = {
    "Content-Type": "that of the message, or `application/octet-stream`",
    "Content-Encoding": "that of the message, if it is a registered coding",
    "webhook-id": "the same for all attempts and all subscribers of a message: use it to recognise "
    "duplicates",
    "webhook-timestamp": "time of the attempt, in seconds since 1970",
    "webhook-signature": "of Standard Webhooks, with a secret: `v1,` and base64; two while "
    "a secret is being replaced",
    "X-Hub-Signature": "of WebSub, with a secret: method, `=`, and hex",
    "Link": '`rel="hub"` and `rel="self"`: the hub, and the topic',
    "Authorization": "with `hub.basic_auth`",
    "X-AMQP-Routing-Key": "the message's routing key",
    "X-AMQP-Exchange": "the exchange that it was published to",
    "X-AMQP-Queue": "the subscribed queue, if the source is a queue",
    "X-AMQP-Redelivered": "`true` if it may have been delivered before",
    "X-AMQP-Redelivered-Count": "the number of failed attempts",
    "message-id": "the property of the message, if it has one",
    "correlation-id": "the same",
    "X-RabbitHub-Msg_Header": "the message's headers that are strings: `k = v, k2 = v2`",
    "traceparent": "the message's trace context, if it has one",
    "tracestate": "the same",
    "ce-NAME": "the attributes of a CloudEvent, with `hub.format=cloudevents-binary`",
    "X-Hub-Hops": "how many hubs the message has passed",
    "X-Hub-Test": "`true`: a test that somebody has sent from the API or the web UI",
}
SECTIONS: Final = {
    "Publishing": (PUBLISHING, ("app/requests", "app/routes", "hub/trace_context.py")),
    "Other requests": (REQUESTS, ("app/access", "app/logs", "app/responses", "app/routes")),
    "Answers": (ANSWERS, ("app",)),
    "Deliveries to callbacks": (DELIVERIES, ("hub/delivery", "hub/trace_context.py")),
}
"""Each table with where the code has to have its names."""
_OWN: Final = re.compile(r"(x-(amqp|hub|csrf|request|reason|rabbithub)|webhook-|ce-)[\w-]*", re.I)
_PARTS: Final = {"ce-id", "x-amqp-message-id", "x-hub-"}
"""Fields that `ce-NAME` and `X-Amqp-NAME` cover, and the beginning of internal ones."""
_INTERNAL: Final = "hub/delivery/envelope.py"
"""The names of headers that no client sees."""


def write() -> str:
    return page("Header fields", INTRODUCTION, _parts())


def _parts() -> Iterator[str]:
    for title, (fields, places) in SECTIONS.items():
        absent = {name.lower().removesuffix("name") for name in fields} - set(_literals(places))
        assert not absent, f"{places} have no {sorted(absent)}"
        yield f"## {title}"
        yield table(("field", "meaning"), [(code(name), text) for name, text in fields.items()])


def undescribed() -> set[str]:
    """The fields of Warren's own in the code that no table has."""
    described = {
        name.lower().removesuffix("name") for fields, _ in SECTIONS.values() for name in fields
    }
    places = ("app/requests", "app/routes", "app/access", "app/logs", "hub/delivery")
    own = {name for name in _literals(places) if _OWN.fullmatch(name)}
    return own - described - _PARTS


def _literals(places: tuple[str, ...]) -> Iterator[str]:
    """The texts and bytes in the modules of these folders, in small letters."""
    for place in places:
        path = ROOT / place
        for file in [path] if path.is_file() else path.rglob("*.py"):
            if file.relative_to(ROOT).as_posix() != _INTERNAL:
                yield from _texts(ast.parse(file.read_text()))


def _texts(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            value = node.value
            text = value if isinstance(value, str) else value.decode("latin-1")
            yield text.lower()
