"""Totals over the objects of broker and hub, counted in slices: there may be 100,000 of a kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ...core.broker import Broker
from ...core.proto.channel import Channel
from ...core.proto.connections import connections_of
from ...core.queue.size import message_bytes
from ...hub.delivery.breaker import BreakerState
from ...hub.delivery.envelope import DELAY_PREFIX
from ...hub.engine.own import DEAD_QUEUE
from ...hub.feeds.health import Health, health_of
from ...hub.requests import Kind
from ...hub.runs.run import Run
from ...hub.service import Hub
from ...hub.streams.archives import Archive
from ...hub.subscriptions.delivery_state import Phase
from .object_family import Object, ObjectFamily
from .object_groups import CHANNEL_GAUGES, CONNECTION_GAUGES
from .sources import ScrapedServer, portions


@dataclass(slots=True)
class BrokerTotals:
    """Consumers and queues are those of clients and of the hub; connections those of AMQP."""

    connections: int = 0
    channels: int = 0
    publishers: int = 0
    """Channels that have published."""
    exchanges: int = 0
    bindings: int = 0
    queues: int = 0
    consumers: int = 0
    ready: int = 0
    unacked: int = 0
    ready_bytes: int = 0
    unacked_bytes: int = 0
    sums: Counter[str] = field(default_factory=Counter)
    """Gauges of channels and connections, by the name of their family."""
    retries: int = 0
    """Messages in retry queues."""
    dead_letters: int = 0
    """Messages in the hub's queue of dead letters."""
    streams: list[tuple[str, Kind, str]] = field(default_factory=list)
    """Virtual host, kind and name of what may be archived."""


@dataclass(slots=True)
class HubTotals:
    subscriptions: Counter[Phase] = field(default_factory=Counter)
    breakers: Counter[BreakerState] = field(default_factory=Counter)
    feeds: Counter[Health] = field(default_factory=Counter)
    tunnels: int = 0
    waiting_polls: int = 0
    queued_requests: int = 0
    requests_in_flight: int = 0
    archives: list[Archive] = field(default_factory=list)
    runs: list[Run] | None = None
    """None if the database can't be read."""


@dataclass(frozen=True, slots=True)
class Scrape:
    """A server with its totals: what the aggregated metrics are read from."""

    server: ScrapedServer
    broker: BrokerTotals
    hub: HubTotals
    endpoint: str
    """The path that is read, in RabbitMQ's words."""


async def scrape(server: ScrapedServer, endpoint: str) -> Scrape:
    totals = await _broker_totals(server.broker)
    return Scrape(server, totals, await _hub_totals(server.hub, totals.streams), endpoint)


async def _broker_totals(broker: Broker) -> BrokerTotals:
    totals = BrokerTotals()
    async for connections in portions(connections_of(broker)):
        totals.connections += len(connections)
        for connection in connections:
            _add(totals.sums, CONNECTION_GAUGES, connection)
            totals.channels += len(connection.channels)
            for channel in connection.channels.values():
                totals.publishers += _publishes(channel)
                _add(totals.sums, CHANNEL_GAUGES, channel)
    for vhost in tuple(broker.vhosts.values()):
        totals.exchanges += len(vhost.exchanges)
        totals.queues += len(vhost.queues)
        async for exchanges in portions(vhost.exchanges.values()):
            for exchange in exchanges:
                totals.bindings += exchange.binding_count
                if exchange.inner is not None:
                    totals.streams.append((vhost.name, "x", exchange.name))
        async for queues in portions(vhost.queues.values()):
            for queue in queues:
                ready, unacked = queue.ready_count, queue.unacked_count
                if ready or unacked:
                    totals.ready += ready
                    totals.unacked += unacked
                    size = message_bytes(queue)
                    of_ready = size * ready // (ready + unacked)
                    totals.ready_bytes += of_ready
                    totals.unacked_bytes += size - of_ready
                totals.consumers += queue.consumer_count
                if queue.persists_all:
                    totals.streams.append((vhost.name, "q", queue.name))
                if ready and queue.name.startswith(DELAY_PREFIX):
                    totals.retries += ready
        if (dead := vhost.queues.get(DEAD_QUEUE.name)) is not None:
            totals.dead_letters += dead.ready_count + dead.unacked_count
    return totals


def _add(sums: Counter[str], gauges: Iterable[ObjectFamily[Object]], one: Object) -> None:
    for family in gauges:
        if value := family.read(one):
            sums[family.name] += int(value)


def _publishes(channel: Channel) -> bool:
    return channel.counters is not None and channel.counters.publish > 0


async def _hub_totals(hub: Hub, streams: Iterable[tuple[str, Kind, str]]) -> HubTotals:
    totals, now_s = HubTotals(), hub.clock.wall_s()
    async for subscriptions in portions(hub.subscription_store.all()):
        totals.subscriptions.update(active.state.phase for active in subscriptions)
        totals.breakers.update(active.breaker_state for active in subscriptions)
    async for feeds in portions(hub.feeds.registry.all()):
        totals.feeds.update(health_of(feed, now_s) for feed in feeds)
    for tunnel in hub.tunnels.labels.all():
        totals.tunnels += 1
        totals.waiting_polls += tunnel.poll_count
        totals.queued_requests += tunnel.queued_count
        totals.requests_in_flight += tunnel.in_flight_count
    for place in streams:
        if (stream := await hub.engine.stream(*place)) is not None:
            totals.archives += hub.archives.of(*place, stream)
    totals.runs = await hub.runs.all_soon()
    return totals
