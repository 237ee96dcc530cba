"""The snapshot of the server as one user sees it, as a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import nlargest
from itertools import chain
from typing import Any, Final, NamedTuple

from ...core.broker import Broker
from ...core.clock import wall_ms
from ...hub.subscriptions.store import SubscriptionStore
from ...hub.subscriptions.subscription import OWN_QUEUE_PREFIX
from .cluster import Cluster
from .counting import Counts
from .health_text import broker_state, cluster_state, hub_state
from .history import MESSAGE_RATES, OverviewHistory
from .hub_counts import FailingCallback, OwnerCounts
from .queue_counts import SHOWN, TroubledQueue, VhostCounts
from .trouble import TROUBLES

RATES: Final = {
    **{name: MESSAGE_RATES[name] for name in ("publish", "confirm", "deliver_get", "ack")},
    "redeliver": MESSAGE_RATES["redeliver"],
    "return_unroutable": ("return_unroutable",),
    "drop_unroutable": ("drop_unroutable",),
}


class View(NamedTuple):
    """The rights of a reader; readers of equal rights share a snapshot. None stands for all."""

    vhosts: frozenset[str] | None
    owner: str | None
    """The owner whose subscriptions, feeds and tunnels are counted."""
    callbacks_of: str | None
    """The owner whose callbacks are named: URLs may contain secrets."""

    @property
    def sees_rates(self) -> bool:
        return self.vhosts is None


class Source(NamedTuple):
    """The sources of a snapshot."""

    broker: Broker
    counts: Counts
    subscriptions: SubscriptionStore
    history: OverviewHistory
    uptime_s: float
    cluster: Cluster | None
    """The engine, if it is not in this process; figures of messages and objects are its own then,
    and 0 here."""


def snapshot(source: Source, view: View) -> dict[str, Any]:
    vhosts, owners = _visible(source.counts, view)
    broker, alarms, cluster = source.broker, source.broker.alarms, source.cluster
    if cluster is not None:
        vhosts = []
    hub = _hub(source, view, vhosts, owners)
    return {
        "at_ms": wall_ms(broker.clock),
        "uptime_s": int(source.uptime_s),
        "rates": source.history.rates(RATES) if view.sees_rates and cluster is None else {},
        "messages": {
            "ready": sum(one.ready for one in vhosts),
            "unacknowledged": sum(one.unacknowledged for one in vhosts),
        },
        "objects": _objects(vhosts),
        "troubled_queues": {kind: sum(one.troubles[kind] for one in vhosts) for kind in TROUBLES},
        "hub": hub,
        "memory": {
            "used_bytes": alarms.used_bytes,
            "limit_bytes": alarms.bounds.memory,
            "alarm": alarms.memory,
        },
        "disk": {
            "free_bytes": alarms.reading.disk_free_bytes,
            "limit_bytes": alarms.bounds.disk_free,
            "alarm": alarms.disk,
        },
        "state": [
            *(broker_state(broker) if cluster is None else cluster_state(cluster.engine)),
            *hub_state(
                hub["failing"], hub["open_breakers"], hub["dead_letters"], hub["failing_feeds"]
            ),
        ],
        "queues": [_queue(one, source, view) for one in _worst_queues(vhosts)],
        "callbacks": [_callback(one) for one in _worst_callbacks(source.counts, view)],
    }


def _visible(counts: Counts, view: View) -> tuple[Sequence[VhostCounts], Sequence[OwnerCounts]]:
    vhosts = counts.vhosts
    seen = vhosts.keys() if view.vhosts is None else view.vhosts & vhosts.keys()
    if view.owner is None:
        return [vhosts[name] for name in seen], list(counts.owners.values())
    own = counts.owners.get(view.owner)
    return [vhosts[name] for name in seen], [] if own is None else [own]


def _objects(vhosts: Sequence[VhostCounts]) -> dict[str, int]:
    return {
        **{
            name: sum(getattr(one, name) for one in vhosts)
            for name in ("connections", "channels", "exchanges", "queues", "consumers")
        },
        "vhosts": len(vhosts),
    }


def _hub(
    source: Source, view: View, vhosts: Sequence[VhostCounts], owners: Sequence[OwnerCounts]
) -> dict[str, Any]:
    return {
        "rates": source.history.hub_rates() if view.sees_rates else {},
        **{
            name: sum(getattr(one, name) for one in owners)
            for name in (
                "subscriptions", "failing", "paused", "open_breakers", "feeds", "failing_feeds",
                "tunnels",
            )
        },
        **_messages_of_callbacks(source, view, vhosts),
    }  # fmt: skip


def _messages_of_callbacks(
    source: Source, view: View, vhosts: Sequence[VhostCounts]
) -> Mapping[str, int | None]:
    """Returns the numbers of messages that wait for a retry and of dead letters. They are counted
    by virtual host, so for users who see only what is their own nothing is known. On a
    cluster retries are not counted."""
    if view.owner is not None:
        return {"waiting_retries": None, "dead_letters": None}
    if source.cluster is not None:
        return {"waiting_retries": None, "dead_letters": source.cluster.dead_letters}
    return {
        "waiting_retries": sum(one.retries for one in vhosts),
        "dead_letters": sum(one.dead_letters for one in vhosts),
    }


def _worst_queues(vhosts: Sequence[VhostCounts]) -> Sequence[TroubledQueue]:
    return nlargest(SHOWN, chain.from_iterable(one.troubled for one in vhosts))


def _queue(found: TroubledQueue, source: Source, view: View) -> dict[str, Any]:
    return {
        **_subscription(found.name, source, view),
        "vhost": found.vhost,
        "name": found.name,
        "messages": found.messages,
        "messages_unacknowledged": found.unacknowledged,
        "consumers": found.consumers,
        "growth_per_s": round(found.growth_per_s, 2),
        "reason": found.reason,
    }


def _subscription(queue: str, source: Source, view: View) -> dict[str, Any]:
    """Returns the subscription whose messages wait in a queue, if the user may see its callback."""
    active = source.subscriptions.by_id(queue.removeprefix(OWN_QUEUE_PREFIX))
    if active is None or view.callbacks_of not in (None, active.subscription.owner):
        return {"subscription": None}
    subscription = active.subscription
    return {"subscription": {"id": subscription.id, "callback": subscription.callback}}


def _worst_callbacks(counts: Counts, view: View) -> Sequence[FailingCallback]:
    if view.callbacks_of is None:
        return nlargest(SHOWN, chain.from_iterable(x.callbacks for x in counts.owners.values()))
    own = counts.owners.get(view.callbacks_of)
    return [] if own is None else nlargest(SHOWN, own.callbacks)


def _callback(found: FailingCallback) -> dict[str, Any]:
    active = found.active
    subscription, failures = active.subscription, active.failure_state
    return {
        "id": subscription.id,
        "callback": subscription.callback,
        "vhost": subscription.source.vhost,
        "source": subscription.source.name,
        "error": "" if failures is None else failures.last_error,
        "failures": found.failures,
        "breaker": active.breaker_state.value,
    }
