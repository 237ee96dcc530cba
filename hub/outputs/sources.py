"""The sources of an output: bindings of its queue, streams, and the permissions for both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ...core.errors import ChannelError
from ..engine.port import Engine
from ..feeds.feed import EXCHANGE as FEEDS_EXCHANGE
from ..feeds.feeds import Feeds
from ..owner_rights import SubscriberRights
from ..requests import Resource
from .definition import Definition, OutputSource
from .output import Output, OutputBinding

RESULTS_EXCHANGE: Final = "hub.pipeline"
"""The exchange to which jobs of the pipeline publish their results; it may be declared later."""
NEAR_DUPLICATES: Final = "near-duplicates"
MARKS: Final = OutputBinding(RESULTS_EXCHANGE, NEAR_DUPLICATES)
_NOT_FOUND: Final = 404


def exchange_of(source: OutputSource) -> str | None:
    """Returns the exchange of a source that is no stream."""
    return FEEDS_EXCHANGE if source.feed is not None else source.exchange


def refusals(
    rights: SubscriberRights, owner: str, vhost: str, definition: Definition
) -> Iterator[tuple[str, str]]:
    """Yields the members that the owner may not read, each with the reason."""
    for number, source in enumerate(definition.sources):
        reason = _refusal(rights, owner, vhost, source)
        if reason is not None:
            yield f"sources[{number}]", reason
    if definition.filter.drop_near_duplicates:
        results = Resource(vhost, "x", RESULTS_EXCHANGE)
        reason = rights.read_refusal(owner, results, NEAR_DUPLICATES)
        if reason is not None:
            yield "filter.drop_near_duplicates", reason


def _refusal(rights: SubscriberRights, owner: str, vhost: str, source: OutputSource) -> str | None:
    exchange = exchange_of(source)
    if exchange is None:
        return rights.read_refusal(owner, Resource(vhost, "q", source.stream or ""), "")
    key = source.feed if source.feed is not None else source.routing_key
    return rights.read_refusal(owner, Resource(vhost, "x", exchange), "#" if key is None else key)


def feeds_of(bound: Iterable[OutputBinding]) -> list[str]:
    """Returns the names of feeds among what is bound, sorted."""
    return sorted(one.routing_key for one in bound if one.exchange == FEEDS_EXCHANGE)


def permitted_streams(rights: SubscriberRights, output: Output) -> list[str]:
    """Returns the streams among the sources that the owner may read, each once."""
    vhost = output.key.vhost
    found = (one.stream for one in output.definition.sources if one.stream is not None)
    return [
        name
        for name in dict.fromkeys(found)
        if rights.read_refusal(output.owner, Resource(vhost, "q", name), "") is None
    ]


def is_bound(output: Output, member: str) -> bool:
    """Returns whether the source of a member of the definition is bound."""
    if not member.startswith("sources["):
        return MARKS in output.bound
    source = output.definition.sources[int(member[len("sources[") : -1])]
    key = source.feed if source.feed is not None else source.routing_key
    exchange = exchange_of(source)
    return any(one.exchange == exchange and key in (None, one.routing_key) for one in output.bound)


async def missing(engine: Engine, feeds: Feeds, vhost: str, source: OutputSource) -> str | None:
    """Returns what is missing of a source, None if nothing is."""
    if source.feed is not None:
        feed = feeds.get(source.feed)
        if feed is None or feed.vhost != vhost:
            return f"no feed '{source.feed}' in vhost '{vhost}'"
    if source.stream is not None:
        found = await engine.queue(vhost, source.stream)
        if found is None:
            return f"no queue '{source.stream}' in vhost '{vhost}'"
        if await engine.stream(vhost, "q", source.stream) is None:
            return f"queue '{source.stream}' in vhost '{vhost}' is no durable stream"
        return None
    exchange = exchange_of(source)
    if exchange and await engine.exchange(vhost, exchange) is None:
        return f"no exchange '{exchange}' in vhost '{vhost}'"
    return None


async def bindings(
    engine: Engine, rights: SubscriberRights, owner: str, vhost: str, definition: Definition
) -> frozenset[OutputBinding]:
    """Returns the bindings to sources that are there and that the owner may read."""
    refused = {member for member, _ in refusals(rights, owner, vhost, definition)}
    found: set[OutputBinding] = set()
    for number, source in enumerate(definition.sources):
        if f"sources[{number}]" not in refused:
            bound = await _bound(engine, vhost, source)
            found.update([] if bound is None else [bound])
    if definition.filter.drop_near_duplicates and "filter.drop_near_duplicates" not in refused:
        found.add(MARKS)
    return frozenset(found)


async def _bound(engine: Engine, vhost: str, source: OutputSource) -> OutputBinding | None:
    if source.feed is not None:
        return OutputBinding(FEEDS_EXCHANGE, source.feed)
    if source.exchange is None:
        return None
    try:
        found = await engine.exchange(vhost, source.exchange)
    except ChannelError as error:
        if error.code != _NOT_FOUND:
            raise
        return None
    if found is None:
        return None
    if source.routing_key is not None:
        return OutputBinding(source.exchange, source.routing_key)
    return OutputBinding(source.exchange, "#" if found.type == "topic" else "")
