"""170-174: the part of a topic that is sent after a change (WebSub 7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..callback import Callback
from ..check_context import CheckContext
from ..expect import check_form
from ..feeds import ATOM, RSS, Entry, Read, atom, read, rss
from ..registry import check
from ..results import Failed, Level, Undecided
from ..topic import Topic

Make = Callable[[str, Iterable[Entry]], bytes]
_FIRST = [Entry(f"urn:example:{number}", f"Entry {number}") for number in (1, 2, 3)]
_NEW = Entry("urn:example:4", "Entry 4")
_CHANGED = Entry("urn:example:2", "Entry 2, corrected")


@check(170, "Each update is the whole document", Level.MUST, "rule 18; WebSub 7")
async def whole(context: CheckContext) -> None:
    """Sends text that only got longer: only Atom and RSS may be reduced."""
    topic, callback = context.topic("text/plain", b"one\n"), context.callback()
    await context.subscribe(callback, topic)
    for count, body in enumerate((b"one\ntwo\n", b"one\ntwo\nthree\n"), 1):
        await context.publish(topic, body)
        await context.delivery(callback, topic, count)


@check(171, "Atom: the whole feed, or its new entries", Level.MUST, "rule 18; WebSub 7")
async def atom_feed(context: CheckContext) -> str:
    return await _feed(context, ATOM, atom)


@check(172, "RSS: the whole feed, or its new entries", Level.MUST, "rule 18; WebSub 7")
async def rss_feed(context: CheckContext) -> str:
    return await _feed(context, RSS, rss)


async def _feed(context: CheckContext, content_type: str, make: Make) -> str:
    """Publishes three entries, then a fourth, then a correction of the second."""
    topic, callback = context.topic(content_type), context.callback()
    topic.body = make(topic.url, _FIRST[:1])
    await context.subscribe(callback, topic)
    updates = (_FIRST, [_NEW, *_FIRST], [_NEW, _FIRST[0], _CHANGED, _FIRST[2]])
    expected = (_FIRST[1], _NEW, _CHANGED)
    for count, (entries, wanted) in enumerate(zip(updates, expected, strict=True), 1):
        await context.publish(topic, make(topic.url, entries))
        form = await _update(context, callback, topic, count, wanted)
    return form


async def _update(
    context: CheckContext, callback: Callback, topic: Topic, count: int, wanted: Entry
) -> str:
    request = await context.request_to(callback, count)
    check_form(request, callback, topic, context.options.hub, None)
    if request.body == topic.body:
        return "sends the whole feed"
    sent, whole = read(request.body), read(topic.body)
    _check_own(sent, whole)
    strange = [entry.id for entry in sent.entries if entry not in whole.entries]
    if strange:
        raise Failed(f"entries were changed: {', '.join(strange)} are not the topic's")
    if wanted not in sent.entries:
        raise Failed(f"the update does not have what is new, entry {wanted.id}")
    return "sends what is new of a feed"


def _check_own(sent: Read, whole: Read) -> None:
    """Checks that elements of the feed beside its entries are unchanged."""
    for name, text in whole.own.items():
        if sent.own.get(name) != text:
            raise Failed(f"the feed's element {name} is {sent.own.get(name)!r}, not {text!r}")


@check(173, "What has not changed is not sent again", Level.MAY, "rule 18; WebSub 6")
async def unchanged(context: CheckContext) -> None:
    topic, callback = context.topic(), context.callback()
    await context.subscribe(callback, topic)
    await context.publish(topic)
    await context.delivery(callback, topic)
    await context.publish(topic, topic.body)
    if await callback.delivered(2, context.options.grace_s):
        raise Undecided("the hub sends at each ping, as it may")


@check(174, "A new content type is delivered", Level.MUST, "rule 17; WebSub 7")
async def new_type(context: CheckContext) -> None:
    topic, callback = context.topic("text/plain", b"plain"), context.callback()
    await context.subscribe(callback, topic)
    topic.content_type = 'application/vnd.example+json; profile="a, b"; charset=UTF-8'
    await context.publish(topic, b"{}")
    await context.delivery(callback, topic)
