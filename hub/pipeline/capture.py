"""Binds streams to exchanges, and unbinds them, over HTTP."""

from __future__ import annotations

import signal
import threading
from datetime import UTC, datetime
from typing import Final

from .errors import OptionError, ReadError
from .server import ServerClient, segment

EVERY_KEY: Final = "#"
KEYLESS: Final = ("topic", "fanout", "headers")
"""Types of exchanges of which a binding with the key # gets everything."""
LONGEST_WAIT_S: Final = 3600.0
"""The clock may be set meanwhile."""


def capture(
    client: ServerClient, vhost: str, exchange: str, stream: str, key: str | None, max_age: str
) -> str:
    """Declares a stream and binds it to an exchange; returns the key. A stream that is new and
    can't be bound is deleted again.

    Raises `OptionError` without a key where none gets everything, and `ReadError`.
    """
    client, found = client.of_objects(f"/api/exchanges/{segment(vhost)}/{segment(exchange)}")
    kind = found["arguments"].get("x-delayed-type", found["type"])
    if key is None and kind not in KEYLESS:
        raise OptionError(
            f"exchange '{exchange}' in vhost '{vhost}' is of type {kind}, of which a binding gets "
            "one routing key: give it with --key"
        )
    key = EVERY_KEY if key is None else key
    queue = f"/api/queues/{segment(vhost)}/{segment(stream)}"
    arguments = {"x-queue-type": "stream"} | ({"x-max-age": max_age} if max_age else {})
    is_new = client.put(queue, {"durable": True, "arguments": arguments})
    try:
        client.post(_bindings(vhost, exchange, stream), {"routing_key": key})
    except ReadError:
        if is_new:
            client.delete(f"{queue}?if-empty=true&if-unused=true")
        raise
    return key


def stop_capture(
    client: ServerClient, vhost: str, exchange: str, stream: str, key: str | None
) -> list[str]:
    """Unbinds a stream from an exchange, from this key or from all; returns the keys. The stream
    keeps its messages.

    Raises `OptionError` if there is no such binding, and `ReadError`.
    """
    bindings = _bindings(vhost, exchange, stream)
    client, listed = client.of_objects(bindings)
    found = [one for one in listed if key in (None, one["routing_key"])]
    if not found:
        wanted = "" if key is None else f" with key '{key}'"
        raise OptionError(
            f"stream '{stream}' in vhost '{vhost}' is not bound to exchange '{exchange}'{wanted}: "
            "warren pipeline list shows what is captured"
        )
    for one in found:
        client.delete(f"{bindings}/{segment(one['properties_key'])}")
    return [one["routing_key"] for one in found]


def _bindings(vhost: str, exchange: str, stream: str) -> str:
    return f"/api/bindings/{segment(vhost)}/e/{segment(exchange)}/q/{segment(stream)}"


def read_time(text: str) -> datetime:
    """Returns a time in the future; without an offset it is UTC. Raises `OptionError`."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise OptionError(f"--until {text}: give a time such as 2026-01-31T12:00:00Z") from None
    found = found if found.tzinfo else found.replace(tzinfo=UTC)
    if found <= datetime.now(UTC):
        raise OptionError(f"--until {text} has passed: give a time in the future, or --stop")
    return found


def wait_until(time: datetime) -> None:
    """Returns at this time, or as soon as the process gets SIGTERM or SIGINT."""
    stopped = threading.Event()
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda *_: stopped.set()) for number in numbers}
    try:
        while (left_s := (time - datetime.now(UTC)).total_seconds()) > 0:
            if stopped.wait(min(left_s, LONGEST_WAIT_S)):
                return
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
