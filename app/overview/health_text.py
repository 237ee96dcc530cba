"""Describes the health of the server: broker, store, disk and hub, a sentence for each problem."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, TypedDict

from ...core.broker import Broker
from ...core.counted import counted
from ...core.resources.amount import in_words

if TYPE_CHECKING:
    from ...hub.engine.amqp.engine import AmqpEngine

Level = Literal["ok", "warn", "bad"]
NEAR = 2
"""Free space of so many times the limit is little."""


class StateLine(TypedDict):
    level: Level
    text: str
    link: str


def cluster_state(cluster: AmqpEngine) -> Iterator[StateLine]:
    """Describes the RabbitMQ cluster that is the engine."""
    if not cluster.is_reachable:
        yield _line("bad", "RabbitMQ's management API can't be reached.", "#/log")
    if shortage := cluster.shortage():
        yield _line("bad", f"Publishers wait: {shortage}.", "")
    elif cluster.is_reachable:
        yield _line("ok", "RabbitMQ takes messages.", "")


def broker_state(broker: Broker) -> Iterator[StateLine]:
    """Describes broker, store and disk."""
    alarms, progress = broker.alarms, broker.store.progress
    if alarms.memory:
        used, limit = in_words(alarms.used_bytes), in_words(alarms.bounds.memory)
        text = f"Publishers wait: {used} of memory are in use, the limit is {limit}."
        yield _line("bad", text, "#/queues")
    else:
        yield _line("ok", "The broker takes messages.", "#/queues")
    if progress.refused > progress.committed:
        yield _line("bad", "The disk refuses writes: what is published is not confirmed.", "#/log")
    else:
        yield _line("ok", "What is confirmed is on disk.", "#/log")
    yield _disk(broker)


def _disk(broker: Broker) -> StateLine:
    alarms = broker.alarms
    free, limit = alarms.reading.disk_free_bytes, alarms.bounds.disk_free
    if free is None:
        return _line("ok", "The free space of the disk is not known.", "#/log")
    text = f"{in_words(free)} of the disk are free"
    if alarms.disk:
        return _line("bad", f"Publishers wait: {text}, the limit is {in_words(limit)}.", "#/log")
    if limit and free < NEAR * limit:
        return _line("warn", f"{text}; publishers wait below {in_words(limit)}.", "#/log")
    return _line("ok", f"{text}.", "#/log")


def hub_state(
    failing: int, resting: int, dead_letters: int | None, feeds: int
) -> Iterator[StateLine]:
    """Describes the hub: subscriptions whose callbacks fail, those of them whose breaker is open,
    dead letters if they are known, feeds that fail."""
    if failing:
        rest = f" (circuit breaker open for {resting})" if resting else ""
        text = f"{counted(failing, 'callback fails', 'callbacks fail')}{rest}."
        yield _line("warn", text, "#/subscriptions")
    else:
        yield _line("ok", "No callback fails.", "#/subscriptions")
    if dead_letters:
        text = f"{counted(dead_letters, 'message')} could not be delivered: replay or delete them."
        yield _line("warn", text, "#/dead-letters")
    if feeds:
        yield _line("warn", f"{counted(feeds, 'feed fails', 'feeds fail')}.", "#/feeds")


def _line(level: Level, text: str, link: str) -> StateLine:
    return {"level": level, "text": text, "link": link}
