"""What live publishing loses while Spark reads a whole stream."""

from __future__ import annotations

import threading

from ..brokers import Broker
from ..figures import Figures, Goal
from ..flow import Flow, Running, Standing, figures
from ..scenario import Scenario, Settings
from ..spark import filled, scan, varied
from ..spent import Spent
from ..worker import Crew
from .spark_read import SMALL_BYTES
from .throughput import one_to_one

LOSS = 0.1


class _Scans(threading.Thread):
    """Scans the stream over and over."""

    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self._broker = broker
        self._done = threading.Event()
        self.count = 0

    def run(self) -> None:
        while not self._done.is_set():
            scan(self._broker)
            self.count += 1

    def stop(self) -> None:
        self._done.set()
        self.join()


def _run(broker: Broker, flow: Flow) -> Figures:
    with Standing(broker, flow), Crew() as crew:
        running = Running(crew, broker, flow)
        spent = Spent(broker)
        running.go()
        return figures(running.finish(), spent)


def live(broker: Broker, settings: Settings) -> Figures:
    """The rates are those beside the scans, which don't end before."""
    flow = one_to_one(settings)
    with filled(broker, varied(SMALL_BYTES), settings.messages):
        alone = _run(broker, flow)
        scan(broker)
        scans = _Scans(broker)
        scans.start()
        try:
            line = _run(broker, flow)
        finally:
            scans.stop()
    assert line.out_rate and alone.out_rate
    lost = 1 - line.out_rate / alone.out_rate
    line.note = f"alone {alone.out_rate:,.0f}/s: {lost:.0%} lost"
    line.goals.append(Goal(f"{LOSS:.0%} lost at most", lost <= LOSS))
    return line


SCENARIOS = (Scenario("spark-live", live, http=True, spark=True),)
