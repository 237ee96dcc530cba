"""Whether the rate falls when more and more publishes wait for their confirms."""

from __future__ import annotations

from dataclasses import replace

from ..brokers import Broker
from ..figures import Figures, Goal
from ..flow import Standing, figures, fill
from ..scenario import Scenario, Settings
from ..spent import Spent
from .confirm import confirmed_flow

WINDOWS = (10_000, 100_000, 1_000_000)
FLAT = 0.8


def unconfirmed(broker: Broker, settings: Settings) -> Figures:
    """In: at a window of a million. Nobody consumes, each window begins with an empty queue.

    The note tells how many publishes were open at most: a broker that confirms fast leaves few.
    """
    rates: list[float] = []
    line = Figures()
    for window in WINDOWS:
        flow = replace(confirmed_flow(settings, window=window), consumers=())
        with Standing(broker, flow):
            spent = Spent(broker)
            outcome = fill(broker, flow)
            note = line.note
            line = figures(outcome, spent)
        rates.append(outcome.in_rate or 0.0)
        line.note = note
        most = outcome.sent[0].most_unconfirmed
        line.remark(f"{window:,}: {rates[-1]:,.0f}/s, {most:,} open at most")
    text = f"a million >= {FLAT} of the rate at 10,000"
    line.goals.append(Goal(text, rates[-1] >= FLAT * rates[0]))
    return line


SCENARIOS = (Scenario("unconfirmed-10k-1m", unconfirmed, long=True),)
