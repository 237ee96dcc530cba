"""A publisher that sends everything again, with the same id: its queue drops what it has.

What had no answer may come twice: it may have been delivered, and then lost by a crash. Of what
was confirmed the checker is told of no repeat, so one that gets through is found out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import zip_longest

from tests.bench import frames
from tests.bench.client import Client
from tests.conformance import frames as tables

from .clients import connected
from .journal import CONFIRMED, NACKED, Journal
from .publishers import READ_BYTES, Habit, Publisher, is_told
from .site import Site
from .wire import BASIC, PUBLISH, Answers, Closed, Form

HEADER = "x-deduplication-header"
ARGUMENTS: dict[str, str | int] = {"x-message-deduplication": True, "x-cache-size": 10_000}
"""Of its queue: it remembers more than this publisher ever has under way."""
REPEATED_MAX = 500
_PERSISTENT_WITH_HEADERS = b"\x30\x00"


class RepeatingPublisher(Publisher):
    """One batch after another, with some of the last ones among them."""

    def __init__(
        self, site: Site, journal: Journal, forms: Sequence[Form], habits: Sequence[Habit]
    ) -> None:
        super().__init__(site, journal, forms, habits)
        (self._form,) = forms
        arguments = b"\x00\x00" + frames.short(self._form.exchange) + frames.short(self._form.key)
        self._method = frames.method(1, BASIC, PUBLISH, arguments + b"\x00")
        self._pending: set[int] = set()
        self._confirmed: deque[int] = deque(maxlen=REPEATED_MAX)

    def session(self) -> None:
        with connected(self.site.amqp) as client:
            client.select_confirms()
            answers = Answers(client.buffered)
            sent = sorted(self._pending) + list(self._confirmed)
            for number in self._pending:
                self.journal.retry(number)
            self._send(client, sent)
            # To the last answer, also for what is known to be confirmed: it would be taken for
            # the answer to the close.
            while answers.count < len(sent) or not self.stopping.is_set():
                if answers.count < len(sent):
                    self._read(client, answers, sent)
                elif batch := self._batch():
                    sent += batch
                    self._send(client, batch)
                elif is_told(client):
                    self._read(client, answers, sent)

    def _batch(self) -> list[int]:
        """New messages with old ones between, if there is room for new ones."""
        habit = self.habit()
        count = min(habit.batch, self.site.room())
        self.rest(habit)
        if count < 1:
            return []
        first = self.journal.attempt(count)
        new = range(first, first + count)
        self._pending.update(new)
        old = self.random.sample(list(self._confirmed), min(count, len(self._confirmed)))
        return [number for pair in zip_longest(new, old) for number in pair if number is not None]

    def _send(self, client: Client, numbers: Sequence[int]) -> None:
        client.socket.sendall(b"".join(map(self._publish, numbers)))

    def _publish(self, number: int) -> bytes:
        headers = tables.table({HEADER: f"id {number}"})
        properties = _PERSISTENT_WITH_HEADERS + headers + b"\x02"
        return self._method + frames.content(1, self._form.body(number), properties)

    def _read(self, client: Client, answers: Answers, sent: Sequence[int]) -> None:
        data = client.socket.recv(READ_BYTES)
        if not data:
            raise ConnectionResetError("closed by the broker")
        for answer in answers.feed(data):
            if answer.last > len(sent):
                raise Closed(f"tag {answer.last} was answered, {len(sent)} were sent")
            for number in sent[answer.first - 1 : answer.last]:
                self._answered(number, CONFIRMED if answer.ack else NACKED)

    def _answered(self, number: int, fate: int) -> None:
        if number not in self._pending:
            return
        self._pending.remove(number)
        self.journal.settle(number, number, fate)
        if fate == CONFIRMED:
            self._confirmed.append(number)
