"""Checks that apply to every verification and every delivery."""

from __future__ import annotations

import hmac
import re
from urllib.parse import quote

from ...hub.links.header import read_link_fields
from . import transcript
from .callback import Callback
from .exchange import Request
from .results import Failed
from .topic import Topic

SIGNATURE = "X-Hub-Signature"
METHODS = ("sha1", "sha256", "sha384", "sha512")
_ENCODED = re.compile("%([0-9A-Fa-f]{2})")


def check_verification(request: Request, mode: str, topic_url: str, callback: Callback) -> None:
    """Checks a verification (WebSub 5.3.1); the parameters are the last of their names, after the
    callback's own."""
    check_target(request, callback, "verification")
    if request.method != "GET":
        raise Failed(f"the verification was a {request.method}, not a GET")
    expected = {"hub.mode": mode, "hub.topic": topic_url}
    for name, value in expected.items():
        found = request.last(name)
        if found != value:
            raise Failed(f"{name} in the verification is {found!r}, not {value!r}")
    if not request.challenge:
        raise Failed("hub.challenge in the verification is empty")
    if mode == "subscribe":
        lease_of(request)


def lease_of(request: Request) -> int:
    """Returns the lease in seconds. Raises `Failed` without one: no lease may be endless
    (WebSub 5.1.1)."""
    text = request.last("hub.lease_seconds")
    if text is None or not (text.isascii() and text.isdigit()) or int(text[:18]) == 0:
        raise Failed(f"hub.lease_seconds in the verification is {text!r}, not a positive number")
    return int(text[:18])


def check_target(request: Request, callback: Callback, what: str) -> None:
    """Checks that the callback is used exactly as given; a verification adds parameters behind
    `?` or `&` (WebSub 5.1.1)."""
    used, given = request.target, callback.target
    if what == "delivery":
        is_same = used == given
    else:
        joint = "" if given.endswith(("?", "&")) else "&" if "?" in given else "?"
        is_same = used.startswith(given + joint)
    if not is_same:
        raise Failed(f"the {what} went to {used}, but the callback given was {given}")


def check_delivery(
    request: Request, callback: Callback, topic: Topic, hub: str, secret: str | None
) -> None:
    """Checks form and body of a delivery; the body must be the current content (WebSub 7)."""
    check_form(request, callback, topic, hub, secret)
    if request.body != topic.body:
        expected, came = transcript.body(topic.body), transcript.body(request.body)
        raise Failed(f"the body is not the topic's content: {came}, expected {expected}")


def check_form(
    request: Request, callback: Callback, topic: Topic, hub: str, secret: str | None
) -> None:
    """Checks a delivery without the contents of its body."""
    check_target(request, callback, "delivery")
    if not request.body.strip():
        raise Failed("the delivery has no body")
    content_type = request.headers.get("Content-Type")
    if content_type != topic.content_type:
        raise Failed(f"Content-Type is {content_type!r}; the topic's is {topic.content_type!r}")
    check_links(request, topic, hub)
    if secret is None:
        if SIGNATURE in request.headers:
            raise Failed(f"{SIGNATURE} is there, though there is no secret to sign with")
    else:
        check_signature(request, secret)


def check_links(request: Request, topic: Topic, hub: str) -> None:
    found = read_link_fields(request.headers.getall("Link", []))
    hubs = [reference for _, reference in found.hubs]
    if not hubs or hubs[0] != hub:
        raise Failed(f"the first rel=hub of the Link headers is {hubs[:1]}, not {hub!r}")
    selves = [reference for _, reference in found.selves]
    if len(selves) != 1 or normal(selves[0]) != normal(topic.self_url):
        raise Failed(f"rel=self of the Link headers is {selves}, not {topic.self_url!r}")


def check_signature(request: Request, secret: str) -> str:
    """Returns the method; raises `Failed` if it is not one of WebSub's, or the digest is wrong."""
    field = request.headers.get(SIGNATURE)
    if field is None:
        raise Failed(f"{SIGNATURE} is missing, though a secret was given")
    method, _, digest = field.partition("=")
    if method not in METHODS:
        raise Failed(f"{SIGNATURE}: {field}: the method is none of {', '.join(METHODS)}")
    right = hmac.digest(secret.encode(), request.body, method).hex()
    if digest.lower() != right:
        raise Failed(f"{SIGNATURE}: {field} is wrong: HMAC of the body gives {right}")
    return method


def normal(url: str) -> str:
    """Decodes percent-encoded unreserved characters (RFC 3986 6.2.2.2)."""
    return _ENCODED.sub(_decoded, url)


def _decoded(code: re.Match[str]) -> str:
    character = chr(int(code[1], 16))
    return character if quote(character, safe="") == character else code[0].upper()
