"""Cuts of the log: a copy of a running store is consistent."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.life import Life, numbered, segments_of
from warrenmq.core.clock import Clock
from warrenmq.core.store import compactor
from warrenmq.core.store.cut import LogCut


def churn(life: Life, bodies: list[bytes]) -> None:
    """Publishes each and takes the oldest, so that segments fill and die."""
    for body in bodies:
        life.publish(body)
        assert life.get() is not None
        life.turns(2, each_ms=600)


@segments_of(3_000)
@pytest.mark.parametrize("count", range(0, 24, 3))
def test_a_cut_is_the_store_at_its_moment(life: Life, tmp_path: Path, count: int) -> None:
    bodies = numbered(5 + count, size=200)
    life.publish_together(bodies[:5])
    churn(life, bodies[5:])
    life.declare("late")
    with life.store.cut() as cut:
        life.client.call("Queue.Delete", queue="late")
        churn(life, numbered(30, 100, size=200))
        (tmp_path / "copy").mkdir()
        for name in cut.names():
            os.link(life.directory / name, tmp_path / "copy" / name)
        held = life.files(".state")
    copy = Life(tmp_path / "copy")
    assert "late" in copy.broker.vhosts["/"].queues
    assert copy.bodies() == bodies[-5:]
    copy.abandon()
    churn(life, numbered(30, 200, size=200))
    assert set(life.files(".state")).isdisjoint(held), "checkpoints are made again"


class Interrupted:
    """Takes the steps of compactions one by one, only in `pause`, and cuts the log after some."""

    def __init__(self, life: Life) -> None:
        self.cut: LogCut | None = None
        self.cuts = 0
        self._life = life
        self._random = random.Random(1)
        self._is_pause = False

    def step(self, steps: Iterator[None], _: Clock) -> bool:
        if not self._is_pause:
            return True
        if next(steps, self) is self:
            return False
        if self.cut is None and self._random.random() < 0.5:
            self.cut = self._life.store.cut()
            self.cuts += 1
        return True

    def pause(self) -> None:
        self._is_pause = True
        self._life.turns(6, each_ms=100)
        self._is_pause = False


@segments_of(3_000)
def test_a_cut_in_the_middle_of_a_compaction(
    life: Life, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compactions = Interrupted(life)
    monkeypatch.setattr(compactor, "run_slice", compactions.step)
    kept: list[bytes] = []
    for round_number in range(30):
        bodies = numbered(8, 8 * round_number, size=200)
        life.publish_together(bodies)
        replies = [life.get(ack=False) for _ in range(len(kept) + 8)]
        for reply in filter(None, replies):
            is_kept = reply.body in kept or reply.body == bodies[0]
            method = "Basic.Reject" if is_kept else "Basic.Ack"
            more = {"requeue": True} if is_kept else {}
            life.client.send(method, delivery_tag=reply["delivery_tag"], **more)
        kept.append(bodies[0])
        compactions.pause()
        if compactions.cut is not None:
            folder = tmp_path / f"copy-{round_number}"
            folder.mkdir()
            with compactions.cut as cut:
                for name in cut.names():
                    os.link(life.directory / name, folder / name)
            compactions.cut = None
            copy = Life(folder)
            assert copy.bodies() == kept
            copy.abandon()
    assert compactions.cuts > 5
