"""`warren repair`: lists, exports, restores and discards stored data that can't be served.

Messages are in quarantine when the definition of their queue was lost; definitions are set aside
when they, or objects they refer to, can't be used. Both stay on disk until an operator decides.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, BinaryIO, NamedTuple

from ...core.auth import Users
from ...core.broker import Broker
from ...core.counted import counted
from ...core.definitions.kinds import QueueDefinition
from ...core.errors import ChannelError, ConfigError
from ...core.local.reader import MessageReader
from ...core.message.model import Message, Properties
from ...core.message.queue_entry import MessageRange
from ...core.store.memory import MemoryStore
from ...core.store.offline import OfflineLog
from ..definitions.command import STANDARD, opened
from ..definitions.values import table_to_json
from ..requests.payload import payload
from .printer import Printer

DEFINITIONS = "definitions"


class RepairState:
    """The broker that a start would recover from the log, and the data that it could not serve."""

    def __init__(self, log: OfflineLog) -> None:
        # The warnings of a start are not logged: the caller reports them.
        logging.getLogger("warrenmq").addHandler(logging.NullHandler())
        store = MemoryStore()
        store.definitions = dict(log.definitions)
        self.broker = Broker(Users(), store=store)
        self.broker.restore()
        known = {
            queue.id
            for vhost in self.broker.vhosts.values()
            for queue in (*vhost.queues.values(), *vhost.inner_queues.values())
        }
        counts = log.counts()
        self.quarantine = {key: counts[key] for key in counts.keys() - known}
        self.set_aside: Mapping[bytes, str] = self.broker.set_aside


class Unserved(NamedTuple):
    """Something that can't be served: in words, and for programs."""

    text: str
    document: Mapping[str, Any]


def unserved(log: OfflineLog) -> Iterator[Unserved]:
    """Yields each queue id in quarantine and each definition that is set aside."""
    found = RepairState(log)
    for queue_id, count in sorted(found.quarantine.items()):
        first = next((MessageReader().read(messages) for messages in _singles(log, queue_id)), None)
        origin = "none of them can be read" if first is None else _origin(first)
        text = f"queue id {queue_id}: {counted(count, 'message')} in quarantine, {origin}"
        yield Unserved(text, {"queue_id": queue_id, "messages": count, "text": text})
    for text in found.set_aside.values():
        yield Unserved(text, {"definition": text})


def unreadable(log: OfflineLog, but: Collection[str] = ()) -> Iterator[Unserved]:
    """Yields each file that can't be read in places, except those in `but`."""
    for name, reason in log.unreadable.items():
        if name not in but:
            text = (
                f"{name}: partly unreadable: {reason}; all other data is served, and the file is "
                f"kept until `warren repair discard {name}`"
            )
            yield Unserved(text, {"file": name, "text": text})


def _origin(message: Message) -> str:
    return f"the first to exchange '{message.exchange}' with routing key '{message.routing_key}'"


def show(data: str, out: Printer) -> None:
    """Prints all data that can't be served. Raises `ConfigError`."""
    with opened(data) as log:
        found = [*unserved(log), *unreadable(log)]
    if out.as_json:
        out.rows([one.document for one in found], (), "")
    for text in [one.text for one in found] or ["nothing is in quarantine"]:
        out.say(text)


def export(data: str, queue_id: int, file: str) -> None:
    """Writes the messages of a queue id in quarantine as JSON lines.

    Raises `ConfigError` if there is no such queue id, or the file can't be written.
    """
    with opened(data) as log:
        _check(RepairState(log), queue_id)
        try:
            with _target(file) as target:
                reader = MessageReader()
                for messages in _singles(log, queue_id):
                    target.write(json.dumps(_described(reader.read(messages))).encode() + b"\n")
        except OSError as error:
            raise ConfigError(f"file {file}: {error.strerror}") from error


def restore(data: str, queue_id: int, vhost_name: str, name: str) -> int:
    """Moves the messages of a queue id in quarantine to a queue, which is declared if missing.

    Returns the number of messages in the queue. Raises `ConfigError`.
    """
    with opened(data) as log:
        found = RepairState(log)
        _check(found, queue_id)
        vhost = found.broker.vhosts.get(vhost_name)
        if vhost is None:
            raise ConfigError(f"there is no vhost '{vhost_name}'; nothing was changed")
        queue = vhost.queues.get(name)
        changes = {}
        if queue is None:
            try:
                queue = vhost.declare_queue(name, durable=True)
            except ChannelError as error:
                raise ConfigError(f"{error.explanation}; nothing was changed") from error
            made = QueueDefinition(vhost_name, name, queue.id, False, {})
            changes[made.key()] = made.value()
        elif queue.persists_all:
            raise ConfigError(
                f"queue '{name}' in vhost '{vhost_name}' is a stream; nothing was changed. Give "
                "the name of a classic or quorum queue, or of a queue that does not exist"
            )
        with _write_errors():
            return log.move(queue_id, queue.id, changes)


def discard(data: str, what: str) -> None:
    """Deletes a queue id in quarantine, the definitions set aside, or an unreadable file.

    Raises `ConfigError`.
    """
    with opened(data) as log:
        found = RepairState(log)
        with _write_errors():
            if what == DEFINITIONS:
                log.change(dict.fromkeys(found.set_aside))
                return
            if what in log.unreadable:
                log.release(what)
                return
            if not what.isdecimal():
                raise ConfigError(
                    f"'{what}' is neither a queue id, nor '{DEFINITIONS}', nor a file that can't "
                    "be read; see `warren repair list`"
                )
            _check(found, int(what))
            log.drop(int(what))


def _check(found: RepairState, queue_id: int) -> None:
    if queue_id not in found.quarantine:
        known = ", ".join(map(str, sorted(found.quarantine))) or "none"
        raise ConfigError(f"queue id {queue_id} is not in quarantine; queue ids there: {known}")


@contextmanager
def _write_errors() -> Iterator[None]:
    """Turns `OSError` into `ConfigError`."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"the changes can't be written: {error.strerror or error}") from error


@contextmanager
def _target(file: str) -> Iterator[BinaryIO]:
    """Opens the file for its owner only, since messages may be secret; `-` is stdout."""
    if file == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as target:
        yield target


def _singles(log: OfflineLog, queue_id: int) -> Iterator[MessageRange]:
    for messages in log.messages(queue_id):
        for position in range(messages.low, messages.high):
            yield MessageRange(messages.entry, position, position + 1)


def _described(message: Message) -> Mapping[str, Any]:
    """Returns a message in the form of RabbitMQ's API."""
    values = {field.name: getattr(message.properties, field.name) for field in fields(Properties)}
    found = {name: value for name, value in values.items() if value is not None}
    if message.properties.headers is not None:
        found["headers"] = table_to_json(message.properties.headers)
    return {
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "properties": found,
        **payload(message.body),
    }
