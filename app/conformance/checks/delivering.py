"""150-156: notifications (WebSub 7)."""

from __future__ import annotations

import os

from ..callback import Callback, always
from ..check_context import CheckContext, new_secret
from ..exchange import Answer
from ..expect import check_signature
from ..registry import check
from ..results import Failed, Level

BINARY = "application/octet-stream"
LARGE_BYTES = 1024 * 1024


@check(150, "Bytes arrive as they are", Level.MUST, "rules 17, 18; WebSub 7")
async def binary(context: CheckContext) -> None:
    """Sends all octets, NUL and invalid UTF-8 included, signed as they are."""
    topic, callback, secret = context.topic(BINARY), context.callback(), new_secret()
    await context.subscribe(callback, topic, ("hub.secret", secret))
    await context.publish(topic, bytes(range(256)) + os.urandom(256))
    await context.delivery(callback, topic, 1, secret)


@check(151, "A megabyte arrives whole", Level.MUST, "rule 18; WebSub 7")
async def large(context: CheckContext) -> None:
    topic, callback = context.topic(BINARY), context.callback()
    await context.subscribe(callback, topic)
    await context.publish(topic, os.urandom(LARGE_BYTES))
    await context.delivery(callback, topic)


@check(152, "hub and self are in one Link header", Level.SHOULD, "rule 19; WebSub 7")
async def one_header(context: CheckContext) -> None:
    topic, callback = context.topic(), context.callback()
    await context.subscribe(callback, topic)
    await context.publish(topic)
    request = await context.delivery(callback, topic)
    count = len(request.headers.getall("Link"))
    if count != 1:
        raise Failed(f"there are {count} Link headers")


@check(153, "Signatures are stronger than SHA-1", Level.SHOULD, "rule 23; WebSub 7.1, 8")
async def strong(context: CheckContext) -> str:
    topic, callback, secret = context.topic(), context.callback(), new_secret()
    await context.subscribe(callback, topic, ("hub.secret", secret))
    await context.publish(topic)
    method = check_signature(await context.delivery(callback, topic, 1, secret), secret)
    if method == "sha1":
        raise Failed("signs with sha1: right, but SHA-256 is the least to use today")
    return method


@check(154, "Every 2xx is a success", Level.MUST, "rule 20; WebSub 7")
async def every_2xx(context: CheckContext) -> None:
    """Checks that a delivery with this response is not repeated, whatever its body says."""
    topic = context.topic()
    callbacks: dict[int, Callback] = {}
    for status in (200, 201, 202, 204, 299):
        callbacks[status] = context.callback()
        body = b"" if status == 204 else b"error: try again"
        callbacks[status].receive = always(Answer(status, body=body))
        await context.subscribe(callbacks[status], topic)
    await context.publish(topic)
    for callback in callbacks.values():
        await context.delivery(callback, topic)
    for status, callback in callbacks.items():
        await context.nothing_more(
            callback, 1, f"after {status} the notification was delivered again"
        )


@check(155, "Redirects of notifications are not followed", Level.MUST, "rule 20; WebSub 7")
async def redirect(context: CheckContext) -> None:
    topic, callback, page = context.topic(), context.callback(), context.callback()
    place = {"Location": page.url}
    callback.receive = always(Answer(307, place))
    await context.subscribe(callback, topic)
    await context.publish(topic)
    await context.request_to(callback, 1)
    if await page.wait(lambda: bool(page.deliveries or page.strays), context.options.grace_s):
        raise Failed("the hub followed the redirect that answered a notification")


@check(156, "Every subscriber gets its own notification", Level.MUST, "rules 18, 23; WebSub 7")
async def everybody(context: CheckContext) -> None:
    """Checks that each delivery is signed with the subscriber's own secret, or not at all."""
    topic = context.topic()
    secrets = [None, new_secret(), new_secret()]
    callbacks = [context.callback(f"?number={number}") for number in range(len(secrets))]
    for callback, secret in zip(callbacks, secrets, strict=True):
        extra = () if secret is None else (("hub.secret", secret),)
        await context.subscribe(callback, topic, *extra)
    await context.publish(topic)
    for callback, secret in zip(callbacks, secrets, strict=True):
        await context.delivery(callback, topic, 1, secret)
