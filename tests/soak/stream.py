"""A stream of bounded length with a reader that follows it over restarts."""

from __future__ import annotations

from tests.conformance import frames as tables
from tests.crash.clients import connected
from tests.crash.publishers import ConfirmPublisher, Habit
from tests.crash.site import Site
from tests.crash.streaming import Following, Offsets, read_stream
from tests.crash.wire import Form

NAME = "soak.stream"
LENGTH_BYTES = 2_000_000
BODY_BYTES = 500
HABITS = (Habit(1, 20, 0.02), Habit(20, 20, 0.2))


class StreamLoad:
    """`audit` compares all that there is with what was confirmed and read so far."""

    def __init__(self, site: Site) -> None:
        self._site = site
        journal = site.checker.publisher(NAME, ())
        self._offsets = Offsets(NAME, journal)
        form = Form(journal.publisher, "", NAME, BODY_BYTES)
        self.workers = [
            Following(site, self._offsets), ConfirmPublisher(site, journal, [form], HABITS)
        ]  # fmt: skip

    def declare(self) -> None:
        arguments = {"x-queue-type": "stream", "x-max-length-bytes": LENGTH_BYTES}
        with connected(self._site.amqp) as client:
            client.declare_queue(NAME, durable=True, arguments=tables.table(arguments)[4:])

    def audit(self) -> None:
        """Called while nobody publishes; faults go to the checker."""
        read = read_stream(self._site, NAME)
        self._offsets.audit(read, read[0].offset if read else self._offsets.following)
        for fault in self._offsets.faults:
            self._site.checker.breaks("lost", fault)
        self._offsets.faults.clear()
