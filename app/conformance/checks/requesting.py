"""110-119: valid and invalid subscription requests."""

from __future__ import annotations

import asyncio

from ..check_context import CheckContext, new_secret
from ..exchange import Answer, Reply, Request
from ..expect import check_signature
from ..registry import check
from ..results import Failed, Level, Undecided

MAX_DELAY_S = 5.0
"""Maximum delay of a verification while the hub should respond."""


@check(110, "The request is answered before the callback is asked", Level.MUST,
       "rule 9; WebSub 5.1.2")  # fmt: skip
async def answered_first(context: CheckContext) -> None:
    """Confirms only after the hub has answered: a hub that waits for the callback waits in vain."""
    topic, callback = context.topic(), context.callback()
    answered = asyncio.Event()
    late: list[Request] = []
    delay_s = min(MAX_DELAY_S, context.options.patience_s / 2)

    async def confirm(request: Request) -> Answer:
        try:
            await asyncio.wait_for(answered.wait(), delay_s)
        except TimeoutError:
            late.append(request)
        return Answer(body=request.challenge)

    callback.confirm = confirm
    reply = await context.ask("subscribe", callback, topic.url)
    answered.set()
    context.require_accepted(reply, "subscribe")
    await context.verification(callback, "subscribe", 1)
    await context.settle()
    if late:
        raise Failed(
            f"the request was answered only when its callback had: {reply} was received after "
            f"{delay_s:g} s"
        )


@check(111, "A secret of 200 bytes is refused", Level.MUST, "rule 2; WebSub 5.1.1")
async def long_secret(context: CheckContext) -> None:
    """Requests with a secret of 200 bytes, once in letters and once beyond ASCII: less than 200
    bytes are allowed."""
    topic = context.topic()
    for name, secret in (("200 letters", "s" * 200), ("100 umlauts", "\u00fc" * 100)):
        extra = ("hub.secret", secret)
        reply = await context.ask("subscribe", context.callback(), topic.url, extra)
        if not 400 <= reply.status < 500:
            raise Failed(f"a secret of 200 bytes ({name}) was answered with {reply}, not 4xx")


@check(112, "A secret of 199 bytes is used whole", Level.MUST, "rule 2; WebSub 5.1.1")
async def longest_secret(context: CheckContext) -> None:
    topic, callback, secret = context.topic(), context.callback(), new_secret(199)
    await context.subscribe(callback, topic, ("hub.secret", secret))
    await context.publish(topic)
    check_signature(await context.delivery(callback, topic, 1, secret), secret)


@check(113, "The callback's own query is kept", Level.MUST, "rule 7; WebSub 5.1.1")
async def query_kept(context: CheckContext) -> None:
    """Subscribes a callback whose query has names that the hub itself appends."""
    query = "?token=a%20b+c&empty=&hub.mode=mine&hub.topic=mine&hub.challenge=mine"
    await _delivered_to(context, query)


@check(114, "The callback is used exactly as it was given", Level.MUST, "rule 8; WebSub 5.1.1")
async def as_given(context: CheckContext) -> None:
    """Subscribes callbacks with upper case, doubled slashes, reserved characters in percent
    encoding, and an empty query."""
    for suffix in ("/Path//to/%2F%3D;a=b,c/@:!$'()*/", "/path?"):
        await _delivered_to(context, suffix)


async def _delivered_to(context: CheckContext, suffix: str) -> None:
    """Subscribes a callback and publishes; the helpers compare the URL that is used with the one
    that was given."""
    topic, callback = context.topic(), context.callback(suffix)
    await context.subscribe(callback, topic)
    await context.publish(topic)
    await context.delivery(callback, topic)


@check(115, "Percent-encoded unreserved characters are decoded", Level.MUST,
       "rule 6; WebSub 5.1.1")  # fmt: skip
async def decoded(context: CheckContext) -> None:
    """Subscribes to a topic in one spelling and pings it in another, twice: a hub may fetch a topic
    some time after its first subscription, whoever pings."""
    topic, callback = context.topic(suffix="/a-b_c~d.e"), context.callback()
    spelled = topic.url.removesuffix("/a-b_c~d.e") + "/%61%2Db%5fc%7Ed%2ee"
    reply = await context.ask("subscribe", callback, spelled)
    context.require_accepted(reply, "subscribe")
    await context.verification(callback, "subscribe", 1)
    await context.settle()
    for count in (1, 2):
        await context.publish(topic)
        await context.delivery(callback, topic, count)


@check(116, "Bad requests are refused", Level.MUST, "rule 10; WebSub 5.1.2")
async def refused(context: CheckContext) -> None:
    for name, reply in await _bad_requests(context):
        if not 400 <= reply.status < 600:
            raise Failed(f"a request with {name} was answered with {reply}, not 4xx")


@check(117, "A refusal says why in plain text", Level.SHOULD, "rule 10; WebSub 5.1.2")
async def reasons(context: CheckContext) -> None:
    for name, reply in await _bad_requests(context):
        if not reply.text.strip():
            raise Failed(f"the refusal of {name} is empty")
        if not reply.content_type.startswith("text/plain"):
            raise Failed(f"the refusal of {name} comes as {reply.content_type or 'no type'}")


async def _bad_requests(context: CheckContext) -> list[tuple[str, Reply]]:
    topic, callback = ("hub.topic", context.topic().url), ("hub.callback", context.callback().url)
    mode = ("hub.mode", "subscribe")
    requests = {
        "an unknown mode": (("hub.mode", "celebrate"), topic, callback),
        "no mode": (topic, callback),
        "no topic": (mode, callback),
        "a topic that is no URL": (mode, ("hub.topic", "not a URL"), callback),
        "no callback": (mode, topic),
        "a callback that is no URL": (mode, topic, ("hub.callback", "not a URL")),
    }
    return [(name, await context.post(*fields)) for name, fields in requests.items()]


@check(118, "Senseless leases are not granted", Level.MUST, "rule 16; WebSub 5.1.1")
async def senseless_leases(context: CheckContext) -> None:
    """Requests leases of 0, -1 and no number: the hub refuses them, or grants a lease that makes
    sense."""
    for asked in ("0", "-1", "soon"):
        topic, callback = context.topic(), context.callback()
        extra = ("hub.lease_seconds", asked)
        reply = await context.ask("subscribe", callback, topic.url, extra)
        if reply.is_accepted:
            request = await context.verification(callback, "subscribe", 1)
            lease = request.query.get("hub.lease_seconds", "")
            if not lease.isdigit() or not lease.strip("0"):
                raise Failed(f"requested a lease of {asked!r} s, the hub granted {lease!r}")
        elif reply.status >= 500:
            raise Undecided(f"requested a lease of {asked!r} s, the hub answered {reply}")


@check(119, "Parameters of PubSubHubbub 0.3 and 0.4 do no harm", Level.MUST,
       "rule 3; WebSub 5.1.1")  # fmt: skip
async def old_parameters(context: CheckContext) -> str:
    """Requests with `hub.verify` and its token; a hub that returns the token serves old
    subscribers."""
    echoed = []
    for how in ("async", "sync"):
        topic, callback = context.topic(), context.callback()
        extra = ("hub.verify", how), ("hub.verify_token", "t&k")
        request = await context.subscribe(callback, topic, *extra)
        token = request.query.get("hub.verify_token")
        if token not in (None, "t&k"):
            raise Failed(f"hub.verify_token 't&k' was returned as {token!r}")
        await context.publish(topic)
        await context.delivery(callback, topic)
        echoed.append(token is not None)
    return "hub.verify_token is echoed" if all(echoed) else "hub.verify_token is not echoed"
