"""Publishers: in confirm mode, in transactions, over HTTP. Each notes before it sends."""

from __future__ import annotations

import random
import select
from collections.abc import Sequence
from dataclasses import dataclass

from tests.bench.client import Client

from .clients import connected
from .http import Http
from .journal import CONFIRMED, NACKED, WITHDRAWN, Journal
from .site import Site, Worker
from .wire import COMMIT, CONNECTION, ROLLBACK, SELECT, TX, Answers, Closed, Encoder, Form

READ_BYTES = 1 << 18
PACE_S = 0.002
OCTETS = {"Content-Type": "application/octet-stream"}
CONNECTION_CLOSE = 50
BUSY = (429, 503, 507)


@dataclass(frozen=True)
class Habit:
    """How many messages at a time, how many unconfirmed, and how long a rest between."""

    batch: int
    window: int
    rest_s: float = 0.0


def is_told(client: Client) -> bool:
    """Waits a moment for what only a server says that goes away: it waits for its clients too."""
    return bool(select.select([client.socket], [], [], PACE_S)[0])


class Publisher(Worker):
    """Sends number n in the form `forms[n % len(forms)]`."""

    def __init__(
        self, site: Site, journal: Journal, forms: Sequence[Form], habits: Sequence[Habit]
    ) -> None:
        super().__init__(site, journal.name)
        self.journal = journal
        self._encoders = [Encoder(form) for form in forms]
        self._habits = habits
        self.random = random.Random(journal.publisher)

    def encode(self, first: int, count: int) -> bytes:
        if len(self._encoders) == 1:
            return self._encoders[0].publishes(first, count)
        kinds = len(self._encoders)
        numbers = range(first, first + count)
        return b"".join(self._encoders[one % kinds].publishes(one, 1) for one in numbers)

    def habit(self) -> Habit:
        return self.random.choice(self._habits)

    def rest(self, habit: Habit) -> None:
        if habit.rest_s:
            self.stopping.wait(habit.rest_s)


class ConfirmPublisher(Publisher):
    """In confirm mode; each connection has another habit."""

    def session(self) -> None:
        with connected(self.site.amqp) as client:
            client.select_confirms()
            self._publish(client, self.habit())

    def _publish(self, client: Client, habit: Habit) -> None:
        answers, sent, base = Answers(client.buffered), 0, self.journal.attempted
        while not self.stopping.is_set() or sent > answers.count:
            room = min(habit.batch, habit.window - (sent - answers.count), self.site.room())
            if room > 0:
                client.socket.sendall(self.encode(self.journal.attempt(room), room))
                sent += room
                self.rest(habit)
            elif sent > answers.count or is_told(client):
                self._read(client, answers, base, sent)

    def _read(self, client: Client, answers: Answers, base: int, sent: int) -> None:
        data = client.socket.recv(READ_BYTES)
        if not data:
            raise ConnectionResetError("closed by the broker")
        for answer in answers.feed(data):
            if answer.last > sent:
                raise Closed(f"tag {answer.last} was answered, {sent} were sent")
            fate = CONFIRMED if answer.ack else NACKED
            # Tags begin at 1, so the first message of this channel has the number `base`.
            self.journal.settle(base + answer.first - 1, base + answer.last - 1, fate)


class TransactionPublisher(Publisher):
    """Commits small and large transactions, and rolls some back."""

    def session(self) -> None:
        with connected(self.site.amqp) as client:
            client.call(TX, SELECT)
            while not self.stopping.is_set():
                if self.site.room() > 0:
                    self._transaction(client, self.habit())
                elif is_told(client):
                    client.expect(CONNECTION, CONNECTION_CLOSE)

    def _transaction(self, client: Client, habit: Habit) -> None:
        count = self.random.randint(1, habit.batch)
        first = self.journal.attempt(count)
        last = first + count - 1
        if self.random.random() < 0.1:
            self.journal.settle(first, last, WITHDRAWN)
            client.socket.sendall(self.encode(first, count))
            client.call(TX, ROLLBACK)
        else:
            self._commit(client, first, last)
        self.rest(habit)

    def _commit(self, client: Client, first: int, last: int) -> None:
        self.journal.groups.append((first, last))
        client.socket.sendall(self.encode(first, last + 1 - first))
        client.call(TX, COMMIT)
        self.journal.groups.pop()
        self.journal.settle(first, last, CONFIRMED)


class HttpPublisher(Publisher):
    """Posts one at a time to a queue's endpoint; what had no answer is posted again.

    A session ends in a calm: the server closes connections that nobody uses.
    """

    def __init__(
        self, site: Site, journal: Journal, forms: Sequence[Form], habits: Sequence[Habit]
    ) -> None:
        super().__init__(site, journal, forms, habits)
        (self._form,) = forms
        self._pending: int | None = None

    def session(self) -> None:
        assert self.site.http is not None
        with Http(self.site.http) as http:
            while self._pending is not None or not self._is_idle():
                if self._pending is not None or self.site.room() > 0:
                    self._post(http, self._next())
                else:
                    self.stopping.wait(PACE_S)
        self.stopping.wait(PACE_S)

    def _is_idle(self) -> bool:
        return self.stopping.is_set() or self.site.calm.is_set()

    def _next(self) -> int:
        if self._pending is None:
            self._pending = self.journal.attempt(1)
        else:
            self.journal.retry(self._pending)
        return self._pending

    def _post(self, http: Http, number: int) -> None:
        path = f"/endpoint/q/{self._form.key}"
        status = http.request("POST", path, self._form.body(number), OCTETS).status
        if status == 202:
            self.journal.settle(number, number, CONFIRMED)
        elif status in BUSY:
            self.journal.settle(number, number, NACKED)
            self.stopping.wait(PACE_S)
        elif self.alive:
            self.fault(f"POST {path} was answered {status}")
        self._pending = None
