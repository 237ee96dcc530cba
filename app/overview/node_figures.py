"""Figures of the node that change: memory, disk, sockets, and what was written."""

from __future__ import annotations

from ...core.broker import Broker
from .history import NODE_FIELDS


def node_figures(broker: Broker) -> dict[str, int]:
    """Returns the values of `NODE_FIELDS`: memory and disk as they were measured last for the
    alarms."""
    reading, written = broker.alarms.reading, broker.store.write_metrics
    values = (
        reading.rss_bytes or 0,
        reading.disk_free_bytes or 0,
        len(broker.connections),
        written.sync_s.cumulative()[-1],
        written.commit_bytes.cumulative()[-1],
        int(written.commit_bytes.sum),
    )
    return dict(zip(NODE_FIELDS, values, strict=True))
