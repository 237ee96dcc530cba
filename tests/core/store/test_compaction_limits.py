"""The bounds of compaction and checkpoints: their end, and the size of a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.core.life import Life, numbered
from tests.support.amqp import method
from warrenmq.core import slices
from warrenmq.core.store import checkpoint, compactor
from warrenmq.core.store.segment_part import SegmentPart

EACH = 200


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    found = Life(tmp_path / "log")
    found.declare("kept")
    yield found
    found.abandon()


def fill(life: Life, count: int, each: int = 1) -> list[bytes]:
    """So many messages, `each` in one record; all are delivered."""
    bodies = numbered(count)
    for first in range(0, count, each):
        life.publish_together(bodies[first : first + each], "kept")
    life.client.consume("kept")
    life.write()
    return bodies


def ack(life: Life, tags: Iterator[int] | range) -> None:
    life.client.feed(b"".join(method(1, "Basic.Ack", delivery_tag=tag) for tag in tags))


def idle(life: Life, minutes: int) -> None:
    life.turns(minutes * 6, each_ms=10_000)


def test_compaction_of_an_idle_store_ends(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small segments of which each is more than one compaction should take. A slice is
    whatever there is to do, so that a turn does as much on a busy machine."""
    monkeypatch.setattr(slices, "SLICE_S", float("inf"))
    monkeypatch.setattr(compactor, "MESSAGES", EACH // 2)
    for number in range(2 * compactor.MERGE):
        life.publish_together(numbered(EACH, number * EACH), "kept")
        life.restart()
    idle(life, 10)
    files, written = life.files(), life.store.writer.written_bytes
    assert "000000000001.log" not in files
    idle(life, 50)
    assert (life.files(), life.store.writer.written_bytes) == (files, written)
    total = 2 * compactor.MERGE * EACH
    got = [found.body for found in life.client.consume("kept") if found.name == "Basic.Deliver"]
    while len(got) < total:
        life.turns(1, each_ms=1)
        got += [found.body for found in life.client.come() if found.name == "Basic.Deliver"]
    assert got == numbered(total)
    ack(life, range(2, total + 1))
    life.write()
    life.crash()
    assert life.bodies("kept") == numbered(1)


def test_messages_that_are_moved_again_and_again_can_be_settled(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compactor, "LIVE_SHARE", 1 / 2)  # whatever is left of it
    bodies = fill(life, 40, each=20)
    ack(life, range(2, 41, 2))
    life.store.log.roll()
    first = life.store.log.open_number
    while life.store.log.open_number < first + 400:
        life.turns(1, each_ms=10)
    ack(life, range(1, 39, 2))
    life.write()
    life.crash()
    assert life.bodies("kept") == bodies[38:39]


class Counted:
    """How often a method was called, at most in one turn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        self.most = self.total = self._now = 0
        plain: Callable[..., object] = getattr(owner, name)

        def counted(*given: object) -> object:
            self._now += 1
            return plain(*given)

        monkeypatch.setattr(owner, name, counted)

    def turn(self) -> None:
        self.most, self.total = max(self.most, self._now), self.total + self._now
        self._now = 0


def test_no_step_grows_with_the_messages(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn is one step: it looks at so many records, or takes one of them over."""
    monkeypatch.setattr(slices, "SLICE_S", -1)
    fill(life, 2_000)
    ack(life, (tag for tag in range(1, 2_001) if tag % 5))
    life.write()
    looks = Counted(monkeypatch, SegmentPart, "settled_of")
    taken = Counted(monkeypatch, SegmentPart, "transfer_to")
    old = life.store.log.open_number
    life.store.log.roll()
    while old in [number for number, held in life.store.log.segments.items() if held.unsettled]:
        life.turns(1, each_ms=1)
        looks.turn()
        taken.turn()
        assert sum(held.unsettled for held in life.store.log.segments.values()) == 400
    assert looks.total >= 400
    assert looks.most <= max(checkpoint.RECORDS_AT_ONCE, compactor.RECORDS_AT_ONCE)
    assert taken.total >= 400
    assert taken.most <= 2


def test_a_checkpoint_in_slices_is_of_one_moment(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a part with many records: some are settled before they are taken down, some after."""
    monkeypatch.setattr(slices, "SLICE_S", -1)
    monkeypatch.setattr(checkpoint, "RECORDS_AT_ONCE", 4)
    bodies = fill(life, 90, each=3)
    ack(life, range(1, 91, 3))
    newest = life.files(".state")[-1]
    life.store.log.roll()
    gone = set(range(1, 91, 3))
    front_and_end = (tag for at in range(2, 45, 3) for tag in (at, 91 - at + 1))
    while life.files(".state")[-1] == newest:
        tag = next(front_and_end)
        ack(life, range(tag, tag + 1))
        gone.add(tag)
        life.turns(1, each_ms=1)
    left = sum(held.unsettled for held in life.store.log.segments.values())
    life.write()
    life.crash()
    assert (
        sum(held.unsettled for held in life.store.log.segments.values()) == left == 90 - len(gone)
    )
    expected = [body for tag, body in enumerate(bodies, 1) if tag not in gone]
    assert life.bodies("kept") == expected
    life.write()
    assert sum(held.unsettled for held in life.store.log.segments.values()) == 0
