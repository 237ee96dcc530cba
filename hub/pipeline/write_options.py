"""The options of writing to an exchange or a queue, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .errors import OptionError
from .options import SERVER_OPTIONS, ServerLogin, optional, refuse_unknown, server_options

_OPTIONS: Final = (*SERVER_OPTIONS, "exchange", "queue", "routingKey")
BATCH_OPTIONS: Final = (*_OPTIONS, "txId", "txVersion")
STREAM_OPTIONS: Final = (*_OPTIONS, "queryName", "checkpointLocation")
"""The last two are Spark's own, which hands them over."""
KEY_BYTES_MAX: Final = 255
TX_ID_BYTES_MAX: Final = 150


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a write; `routing_key` is for rows that have none. With `queue` it is the
    queue's name, and the exchange is the default one.

    Of what is published with the same `tx_id`, that with a `tx_version` that was published, or a
    lower one, is left out. `checkpoint` is the query's, for errors.
    """

    server: ServerLogin
    vhost: str
    exchange: str
    queue: str | None
    routing_key: str
    tx_id: str | None
    tx_version: int
    checkpoint: str


def write_options(options: Mapping[str, str], known: tuple[str, ...]) -> WriteOptions:
    """Reads the options of a write, of which `known` are allowed. Raises `OptionError` naming the
    option, its value and what it may be."""
    given = {name.lower(): value for name, value in options.items()}
    refuse_unknown(given, known)
    exchange, queue, routing_key = _target(given)
    version = optional(given, "txVersion", low=0)
    if version is not None and "txid" not in given:
        raise OptionError(f"txVersion={version}: it numbers the writes of a txId; give that too")
    return WriteOptions(
        server=server_options(given),
        vhost=given.get("vhost", "/"),
        exchange=exchange,
        queue=queue,
        routing_key=routing_key,
        tx_id=_bounded(given["txid"], "txId", 1, TX_ID_BYTES_MAX) if "txid" in given else None,
        tx_version=version or 0,
        checkpoint=given.get("checkpointlocation", "CHECKPOINT"),
    )


def _target(given: Mapping[str, str]) -> tuple[str, str | None, str]:
    """Returns the exchange, the queue if it is one, and the routing key of rows without one."""
    if ("exchange" in given) == ("queue" in given):
        found = "both are given" if "queue" in given else "none is given"
        raise OptionError(
            f"give .option('exchange', 'news') or .option('queue', 'jobs'): {found}; an empty "
            "exchange is the default one, which takes a routing key as a queue's name"
        )
    if "queue" not in given:
        key = _bounded(given.get("routingkey", ""), "routingKey", 0, KEY_BYTES_MAX)
        return given["exchange"], None, key
    if "routingkey" in given:
        raise OptionError("routingKey beside queue: all rows go to that queue; leave it out")
    queue = _bounded(given["queue"], "queue", 1, KEY_BYTES_MAX)
    return "", queue, queue


def _bounded(value: str, name: str, low: int, high: int) -> str:
    size = len(value.encode())
    if not low <= size <= high:
        raise OptionError(f"{name} has {size} bytes: give {low} to {high}")
    return value
