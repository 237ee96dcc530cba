"""110-119: what a subscription request may and may not say."""

from __future__ import annotations

import asyncio

from ..exchange import Answer, Reply, Request
from ..expect import check_signature
from ..registry import check
from ..stage import Stage, new_secret
from ..verdicts import Failed, Level, Undecided

HELD_S = 5.0
"""How long a verification is held at most while the hub should answer."""


@check(110, "The request is answered before the callback is asked", Level.MUST,
       "rule 9; WebSub 5.1.2")  # fmt: skip
async def answered_first(stage: Stage) -> None:
    """The callback confirms when the hub has answered; who waits for it waits in vain."""
    topic, callback = stage.topic(), stage.callback()
    answered = asyncio.Event()
    late: list[Request] = []
    held_s = min(HELD_S, stage.options.patience_s / 2)

    async def confirm(request: Request) -> Answer:
        try:
            await asyncio.wait_for(answered.wait(), held_s)
        except TimeoutError:
            late.append(request)
        return Answer(body=request.challenge)

    callback.confirm = confirm
    reply = await stage.ask("subscribe", callback, topic.url)
    answered.set()
    stage.require_accepted(reply, "subscribe")
    await stage.verification(callback, "subscribe", 1)
    await stage.settle()
    if late:
        raise Failed(
            f"the request was answered only when its callback had: {reply} came after {held_s:g} s"
        )


@check(111, "A secret of 200 bytes is refused", Level.MUST, "rule 2; WebSub 5.1.1")
async def long_secret(stage: Stage) -> None:
    """Less than 200 bytes are allowed; of characters beyond ASCII there are fewer."""
    topic = stage.topic()
    for name, secret in (("200 letters", "s" * 200), ("100 umlauts", "\u00fc" * 100)):
        extra = ("hub.secret", secret)
        reply = await stage.ask("subscribe", stage.callback(), topic.url, extra)
        if not 400 <= reply.status < 500:
            raise Failed(f"a secret of 200 bytes ({name}) was answered with {reply}, not 4xx")


@check(112, "A secret of 199 bytes is used whole", Level.MUST, "rule 2; WebSub 5.1.1")
async def longest_secret(stage: Stage) -> None:
    topic, callback, secret = stage.topic(), stage.callback(), new_secret(199)
    await stage.subscribe(callback, topic, ("hub.secret", secret))
    await stage.publish(topic)
    check_signature(await stage.delivery(callback, topic, 1, secret), secret)


@check(113, "The callback's own query is kept", Level.MUST, "rule 7; WebSub 5.1.1")
async def query_kept(stage: Stage) -> None:
    """Also where it has names that the hub itself appends."""
    query = "?token=a%20b+c&empty=&hub.mode=mine&hub.topic=mine&hub.challenge=mine"
    await _delivered_to(stage, query)


@check(114, "The callback is used exactly as it was given", Level.MUST, "rule 8; WebSub 5.1.1")
async def as_given(stage: Stage) -> None:
    """Case, doubled slashes, reserved characters in percent encoding, an empty query."""
    for suffix in ("/Path//to/%2F%3D;a=b,c/@:!$'()*/", "/path?"):
        await _delivered_to(stage, suffix)


async def _delivered_to(stage: Stage, suffix: str) -> None:
    """The helpers compare what was used with what was given."""
    topic, callback = stage.topic(), stage.callback(suffix)
    await stage.subscribe(callback, topic)
    await stage.publish(topic)
    await stage.delivery(callback, topic)


@check(115, "Percent-encoded unreserved characters are decoded", Level.MUST,
       "rule 6; WebSub 5.1.1")  # fmt: skip
async def decoded(stage: Stage) -> None:
    """The topic is subscribed to in one spelling and pinged in another; twice, for a hub may look
    at a topic some time after its first subscription, whoever pings."""
    topic, callback = stage.topic(suffix="/a-b_c~d.e"), stage.callback()
    spelled = topic.url.removesuffix("/a-b_c~d.e") + "/%61%2Db%5fc%7Ed%2ee"
    reply = await stage.ask("subscribe", callback, spelled)
    stage.require_accepted(reply, "subscribe")
    await stage.verification(callback, "subscribe", 1)
    await stage.settle()
    for count in (1, 2):
        await stage.publish(topic)
        await stage.delivery(callback, topic, count)


@check(116, "Bad requests are refused", Level.MUST, "rule 10; WebSub 5.1.2")
async def refused(stage: Stage) -> None:
    for name, reply in await _bad_requests(stage):
        if not 400 <= reply.status < 600:
            raise Failed(f"a request with {name} was answered with {reply}, not 4xx")


@check(117, "A refusal says why in plain text", Level.SHOULD, "rule 10; WebSub 5.1.2")
async def reasons(stage: Stage) -> None:
    for name, reply in await _bad_requests(stage):
        if not reply.text.strip():
            raise Failed(f"the refusal of {name} is empty")
        if not reply.content_type.startswith("text/plain"):
            raise Failed(f"the refusal of {name} comes as {reply.content_type or 'no type'}")


async def _bad_requests(stage: Stage) -> list[tuple[str, Reply]]:
    topic, callback = ("hub.topic", stage.topic().url), ("hub.callback", stage.callback().url)
    mode = ("hub.mode", "subscribe")
    requests = {
        "an unknown mode": (("hub.mode", "celebrate"), topic, callback),
        "no mode": (topic, callback),
        "no topic": (mode, callback),
        "a topic that is no URL": (mode, ("hub.topic", "not a URL"), callback),
        "no callback": (mode, topic),
        "a callback that is no URL": (mode, topic, ("hub.callback", "not a URL")),
    }
    return [(name, await stage.post(*fields)) for name, fields in requests.items()]


@check(118, "Senseless leases are not granted", Level.MUST, "rule 16; WebSub 5.1.1")
async def senseless_leases(stage: Stage) -> None:
    """Refused, or answered with a lease that makes sense: the hub may choose."""
    for asked in ("0", "-1", "soon"):
        topic, callback = stage.topic(), stage.callback()
        extra = ("hub.lease_seconds", asked)
        reply = await stage.ask("subscribe", callback, topic.url, extra)
        if reply.is_accepted:
            request = await stage.verification(callback, "subscribe", 1)
            lease = request.query.get("hub.lease_seconds", "")
            if not lease.isdigit() or not lease.strip("0"):
                raise Failed(f"asked for a lease of {asked!r} s, the hub granted {lease!r}")
        elif reply.status >= 500:
            raise Undecided(f"asked for a lease of {asked!r} s, the hub answered {reply}")


@check(119, "Parameters of PubSubHubbub 0.3 and 0.4 do no harm", Level.MUST,
       "rule 3; WebSub 5.1.1")  # fmt: skip
async def old_parameters(stage: Stage) -> str:
    """`hub.verify` and its token; a token that comes back serves old subscribers."""
    notes = []
    for how in ("async", "sync"):
        topic, callback = stage.topic(), stage.callback()
        extra = ("hub.verify", how), ("hub.verify_token", "t&k")
        request = await stage.subscribe(callback, topic, *extra)
        token = request.query.get("hub.verify_token")
        if token not in (None, "t&k"):
            raise Failed(f"hub.verify_token 't&k' came back as {token!r}")
        await stage.publish(topic)
        await stage.delivery(callback, topic)
        notes.append(token is not None)
    return "hub.verify_token is echoed" if all(notes) else "hub.verify_token is not echoed"
