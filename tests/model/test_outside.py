"""RabbitMQ and Warren's server, over sockets, against the same model."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from time import monotonic

import pytest

from tests.support import rabbitmq as rabbitmq_support
from tests.support.amqp import Reply
from tests.support.server import WarrenServer

from . import compare
from .broker import Model
from .choices import OWN_EXCHANGES, QUEUES, Draw
from .dialect import RABBITMQ, WARREN, Dialect
from .machine import Machine, run
from .operations import Operation, Seat
from .oracle import ManagedRabbitMQ
from .outside import Outside
from .pair import Pair

pytestmark = pytest.mark.promise

PATIENCE_S = 10.0
HOUR_MS = 3_600_000


class Distant(Pair):
    """What a broker does may take a while to show."""

    driver: Outside

    def check(self, operation: Operation) -> None:
        before = set(self.model.channels)
        self.driver.send(operation)
        came: dict[Seat, list[Reply]] = {}
        until_s = monotonic() + PATIENCE_S
        while True:
            guess = deepcopy(self.model)
            guess.apply(operation, compare.seen_in(came), compare.generated_in(came))
            queues = {name: queue.owner for name, queue in guess.queues.items()}
            seats = before & set(guess.channels) - compare.closed_in(came)
            counts = self.driver.settle(sorted(seats), queues)
            for seat, replies in self.driver.came().items():
                came.setdefault(seat, []).extend(replies)
            trial = deepcopy(self.model)
            try:
                compare.step(trial, operation, came)
                expected = {name: (ready, users) for name, ready, users in trial.visible_queues()}
                compare.need(counts == expected, "queues are", counts, "not", expected)
            except compare.Mismatch:
                if monotonic() > until_s:
                    raise
                continue
            self.model = trial
            return


class Remote(Machine):
    """Nothing in it waits for time: what lives for a while, lives for hours."""

    def span(self, ms: int) -> int:
        return HOUR_MS + ms if ms else 0

    def special(self, seat: Seat, draw: Draw) -> None:
        """Not over sockets: a plugin's, or a matter of time."""

    def may_go_together(self) -> bool:
        """Dead letters overtake what is published behind their causes, or don't."""
        return not any(
            queue.rule("dead-letter-exchange") is not None for queue in self.model.queues.values()
        )


def pair(port: int, api_url: str, dialect: Dialect) -> Distant:
    outside = Outside(port, api_url)
    outside.clear(QUEUES, OWN_EXCHANGES)
    return Distant(outside, Model(dialect, knows_time=False))


@pytest.fixture(scope="module")
def oracle() -> Iterator[ManagedRabbitMQ]:
    if reason := rabbitmq_support.missing():
        pytest.skip(reason)
    with ManagedRabbitMQ() as server:
        yield server


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_rabbitmq(oracle: ManagedRabbitMQ) -> None:
    run(Remote, lambda: pair(oracle.port, oracle.api_url, RABBITMQ), cases=35, steps=25)


@pytest.mark.timeout(600)
def test_warren(warren: WarrenServer) -> None:
    api_url = f"{warren.http_url}/api"
    run(Remote, lambda: pair(warren.amqp_port, api_url, WARREN), cases=20, steps=25)
    assert "Traceback" not in warren.output()
