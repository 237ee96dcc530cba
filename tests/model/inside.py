"""Warren in this process: a broker on a real log, whose time stands still between operations."""

from __future__ import annotations

import logging
import tempfile
import traceback
from pathlib import Path
from shutil import rmtree

from tests.core.life import Life
from tests.support.amqp import Client, Reply, method, take_turns
from warrenmq.core.definitions.kinds import PolicyDefinition
from warrenmq.core.route.at_random import chance

from .compare import Came
from .operations import WRITTEN_MS, Advance, Call, Drop, Operation, Policy, Publishes, Restart, Seat
from .wire import operation_bytes

CONNECTIONS = (0, 1)
STEP_MS = 10
SEED = 7
"""Of the random exchanges, so that a case is the same each time."""


class Errors(logging.Handler):
    """Keeps what the broker logs as an error: whatever a client does, that is a defect."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info:
            text += "".join(traceback.format_exception(record.exc_info[1]))
        self.records.append(text)


class Inside:
    """Two connections to a broker; `perform` does an operation and gives what came of it."""

    def __init__(self, *, fast: bool = True, pages: bool = False) -> None:
        """With `pages` all that can be on disk alone is, after each operation."""
        self.fast = fast
        self.pages = pages
        chance.seed(SEED)
        self.errors = Errors()
        logging.getLogger().addHandler(self.errors)
        self.directory = Path(tempfile.mkdtemp(prefix="warren-model-"))
        self.life = Life(self.directory)
        self.clients = {number: self._connect() for number in CONNECTIONS}

    def _connect(self) -> Client:
        """Channel 1 is closed again, as nobody asked for it."""
        client = Client(self.life.broker, fast=self.fast)
        client.call("Channel.Close", reply_code=200)
        return client

    def close(self) -> None:
        logging.getLogger().removeHandler(self.errors)
        self.life.abandon()
        rmtree(self.directory)

    def perform(self, operation: Operation) -> Came:
        match operation:
            case Call((connection, _)) | Publishes((connection, _)):
                self.clients[connection].receive(operation_bytes(operation))
            case Drop(connection):
                self.clients[connection].connection.lost()
                take_turns(self.life.broker)
                came = self.came()
                self.clients[connection] = self._connect()
                return {seat: replies for seat, replies in came.items() if seat[0] != connection}
            case Advance(by_ms):
                self._advance(by_ms)
            case Restart(clean):
                self._restart(clean)
                return {}
            case Policy():
                self._set_policy(operation)
        return self.came()

    def _advance(self, by_ms: int) -> None:
        """In steps that end where the broker wants to be woken."""
        clock = self.life.clock
        until = clock.now_ms() + by_ms
        while True:
            due = self.life.broker.timers.next_ms
            now = clock.now_ms()
            step_ms = min(until - now, STEP_MS, until if due is None else max(0, due - now))
            clock.advance(step_ms)
            take_turns(self.life.broker)
            if clock.now_ms() >= until:
                break
        self.life.turns(2)

    def _set_policy(self, policy: Policy) -> None:
        policies = self.life.broker.vhosts["/"].policies
        if policy.definition is None:
            policies.clear(policy.name)
        else:
            policies.set(
                PolicyDefinition(
                    "/", policy.name, policy.pattern, policy.apply_to, policy.priority,
                    dict(policy.definition),
                )
            )  # fmt: skip
        take_turns(self.life.broker)

    def _restart(self, clean: bool) -> None:
        if clean:
            self.life.restart()
        else:
            self._advance(WRITTEN_MS)
            self.life.crash()
        self.clients = {number: self._connect() for number in CONNECTIONS}

    def came(self) -> Came:
        """By seat; channels and connections that the broker closed are closed here too."""
        self.life.turns(2)
        if self.pages:
            self._page_out()
        assert not self.errors.records, "\n".join(self.errors.records)
        found: dict[Seat, list[Reply]] = {}
        for number, client in list(self.clients.items()):
            for reply in client.come():
                found.setdefault((number, reply.channel), []).append(reply)
                if reply.name == "Channel.Close":
                    client.receive(method(reply.channel, "Channel.CloseOk"))
                elif reply.name == "Connection.Close":
                    client.receive(method(0, "Connection.CloseOk"))
                    self.clients[number] = self._connect()
        return found

    def _page_out(self) -> None:
        vhost = self.life.broker.vhosts["/"]
        for queue in (*vhost.queues.values(), *vhost.inner_queues.values()):
            for _ in queue.page_out(0, transient=True):
                pass
        self.life.turns(2)

    def counts(self) -> list[tuple[str, int, int]]:
        """Name, ready messages and consumers of each queue."""
        queues = self.life.broker.vhosts["/"].queues.values()
        return sorted((queue.name, queue.ready_count, queue.consumer_count) for queue in queues)
