"""The durable log of a server: opened before anything else, stopped after everything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..core.broker import Broker
from ..core.clock import Clock
from ..core.errors import ConfigError
from ..core.store.disk import RealDisk
from ..core.store.durable import DurableStore
from ..core.store.offline import LOG

RESERVE_BYTES = 64 * 1024 * 1024
_RESERVE_SHARE = 8
"""A small disk gives up no more than this part of it."""


def open_store(
    directory: Path, clock: Clock, segment_bytes: int, on_failure: Callable[[OSError], None]
) -> DurableStore:
    """Recovers what an earlier process left in the data directory.

    Raises `ConfigError` if that is damaged, of a newer Warren, or can't be read or written.
    """
    try:
        disk = RealDisk(directory / LOG)
        reserve = min(RESERVE_BYTES, disk.total_bytes() // _RESERVE_SHARE)
        return DurableStore(
            disk,
            clock=clock,
            segment_bytes=segment_bytes,
            reserve_bytes=reserve,
            on_failure=on_failure,
        )
    except OSError as error:
        raise ConfigError(f"{directory / LOG}: {error.strerror or error}") from error


def stop_store(store: DurableStore, broker: Broker) -> None:
    """Keeps how far each queue was delivered: what is behind that comes back as new."""
    broker.slices.finish()  # What clients have settled is settled after the next start too.
    broker.clock_steps.look()
    delivered: dict[tuple[int, int | None], int] = {}
    for vhost in broker.vhosts.values():
        for queue in vhost.queues.values():
            if queue.durable:
                delivered |= queue.highest_delivered
    store.stop(delivered)
