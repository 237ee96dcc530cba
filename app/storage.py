"""Opens and stops the message store of a server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..core.broker import Broker
from ..core.clock import Clock
from ..core.errors import ConfigError, StoreFailure
from ..core.store.disk import FULL, RealDisk
from ..core.store.durable import DurableStore
from ..core.store.offline import LOG

RESERVE_BYTES = 64 * 1024 * 1024
_RESERVE_SHARE = 8
"""The reserve is at most this fraction (1/8) of the disk."""


def open_store(
    directory: Path, clock: Clock, segment_bytes: int, on_failure: Callable[[OSError], None]
) -> DurableStore:
    """Opens the store in the data directory and recovers its contents.

    Raises `ConfigError` if it is damaged, was written by a newer Warren, or can't be read or
    written; `StoreFailure` if the disk is full, which another start may find otherwise.
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
        kind = StoreFailure if error.errno in FULL else ConfigError
        raise kind(f"{error.filename or directory / LOG}: {error.strerror or error}") from error


def stop_store(store: DurableStore, broker: Broker) -> None:
    """Stops the store and records how far each queue was delivered.

    After the next start, messages up to there are marked as redelivered.
    """
    broker.slices.finish()  # so that settled messages stay settled after the next start
    broker.clock_steps.check()
    delivered: dict[tuple[int, int | None], int] = {}
    for vhost in broker.vhosts.values():
        for queue in vhost.queues.values():
            if queue.durable:
                delivered |= queue.highest_delivered
    store.stop(delivered)
