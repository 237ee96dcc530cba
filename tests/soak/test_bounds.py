"""Growth by the hour, and the sentences for what is too much."""

from __future__ import annotations

from dataclasses import replace

import pytest

from .bounds import MIB, Bounds, Course, exceeded
from .probe import Latency
from .sample import HOUR_S, Rest, Sample, growth

FIRST = Sample(
    life=1, at_s=0.0, memory_bytes=100 * MIB, open_files=50, data_bytes=0, output_bytes=0
)


def test_growth_is_the_slope_of_all_lives_together() -> None:
    lives = [[(0.0, 5.0), (10.0, 6.0), (20.0, 7.0)], [(30.0, 1.0), (40.0, 2.0)], [(50.0, 9.0)], []]
    found = growth(lives)
    assert found.per_hour == pytest.approx(0.1 * HOUR_S)
    assert found.seen == pytest.approx(2.0)


def test_one_point_does_not_grow() -> None:
    assert growth([[(1.0, 5.0)]]).per_hour == growth([]).per_hour == 0.0


def course(**by_round: int) -> Course:
    """An hour in seven rounds whose samples grow by so much in each; the first is warm-up."""
    samples = [
        replace(FIRST, at_s=number * 600.0, **{
            name: getattr(FIRST, name) + number * step for name, step in by_round.items()
        })
        for number in range(7)
    ]  # fmt: skip
    return Course(samples, [Rest(0.0, 0.0)], [Latency(stall_ms=3.0)], [0.5])


def test_a_quiet_hour_exceeds_nothing() -> None:
    assert exceeded(course(memory_bytes=MIB, open_files=1, data_bytes=MIB), Bounds()) == []


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("memory_bytes", 20 * MIB), ("open_files", 5), ("data_bytes", 60 * MIB),
        ("output_bytes", 4 * MIB),
    ],
)  # fmt: skip
def test_what_grows_is_named(name: str, step: int) -> None:
    [sentence] = exceeded(course(**{name: step}), Bounds())
    assert sentence.startswith(f"{name}: grew by {5 * step:,}, {6 * step:,} an hour; allowed are ")


def test_a_trifle_is_no_growth_however_fast() -> None:
    quick = course(memory_bytes=20 * MIB)
    quick.samples = [replace(one, at_s=one.at_s / 1_000) for one in quick.samples[:3]]
    assert exceeded(quick, Bounds()) == []


def test_a_restart_is_no_shrinking_that_hides_growth() -> None:
    """Each life gets 60 MiB more; only data would be taken for one line."""
    grown = course(memory_bytes=20 * MIB)
    again = [replace(one, life=2, at_s=one.at_s + HOUR_S + 600) for one in grown.samples]
    grown.samples += again
    assert grown.growths()["memory_bytes"].per_hour == pytest.approx(120 * MIB)


def test_a_rest_that_is_none_and_a_stall_are_named() -> None:
    busy = course()
    busy.rests.append(Rest(cpu_share=0.2, written_bytes_per_s=12.4e6))
    busy.latencies.append(Latency(stall_ms=12_000.0))
    assert exceeded(busy, Bounds()) == [
        "stall_ms: 12000.0, allowed are 250.0",
        "rest_cpu_share: 0.2, allowed are 0.02",
        "rest_written_bytes_per_s: 12400000, allowed are 1024.0",
    ]
