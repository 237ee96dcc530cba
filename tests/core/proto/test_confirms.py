from __future__ import annotations

import pytest

from tests.support.amqp import read
from warrenmq.core.proto.confirms import Confirms

ACK, NACK = "Basic.Ack", "Basic.Nack"


def answers(confirms: Confirms, committed: int = 0) -> list[tuple[str, int, bool]]:
    replies = read(confirms.collect(3, committed))
    assert all(reply.channel == 3 for reply in replies)
    return [(reply.name, reply["delivery_tag"], reply["multiple"]) for reply in replies]


def test_nothing_published_nothing_said() -> None:
    confirms = Confirms()
    assert answers(confirms) == []
    assert not confirms.waiting


def test_one_publish_is_acked_alone() -> None:
    confirms = Confirms()
    confirms.add(1, 0)
    assert answers(confirms) == [(ACK, 1, False)]
    assert not confirms.waiting
    assert answers(confirms) == []


def test_several_publishes_are_one_multiple_ack() -> None:
    confirms = Confirms()
    confirms.add(2, 0)
    confirms.add(3, 0)
    assert answers(confirms) == [(ACK, 5, True)]


def test_multiple_is_set_only_when_it_covers_more_than_one() -> None:
    confirms = Confirms()
    confirms.add(4, 0)
    answers(confirms)
    confirms.add(1, 0)
    assert answers(confirms) == [(ACK, 5, False)]


def test_a_publish_waits_for_its_commit() -> None:
    confirms = Confirms()
    confirms.add(2, 7)
    assert answers(confirms, 6) == []
    assert confirms.waiting
    assert answers(confirms, 7) == [(ACK, 2, True)]


def test_transient_behind_persistent_waits() -> None:
    confirms = Confirms()
    confirms.add(1, 0)
    confirms.add(1, 1)
    confirms.add(5, 0)
    assert answers(confirms, 0) == [(ACK, 1, False)]
    assert answers(confirms, 0) == []
    assert answers(confirms, 1) == [(ACK, 7, True)]


def test_refused_is_nacked_alone_between_acks() -> None:
    confirms = Confirms()
    confirms.add(3, 0)
    confirms.add_refused()
    confirms.add(1, 0)
    assert answers(confirms) == [(ACK, 3, True), (NACK, 4, False), (ACK, 5, False)]


def test_refusals_in_a_row_are_nacked_one_by_one() -> None:
    confirms = Confirms()
    confirms.add_refused()
    confirms.add_refused()
    assert answers(confirms) == [(NACK, 1, False), (NACK, 2, False)]


def test_refused_keeps_its_place_behind_a_commit() -> None:
    """A nack before the ack of an earlier publish would be out of publish order."""
    confirms = Confirms()
    confirms.add(1, 1)
    confirms.add_refused()
    assert answers(confirms, 0) == []
    assert answers(confirms, 1) == [(ACK, 1, False), (NACK, 2, False)]


def test_commits_come_true_one_after_the_other() -> None:
    confirms = Confirms()
    confirms.add(2, 1)
    confirms.add(2, 2)
    confirms.add(2, 3)
    assert answers(confirms, 2) == [(ACK, 4, True)]
    assert answers(confirms, 3) == [(ACK, 6, True)]


@pytest.mark.parametrize("commit", [0, 5])
def test_published_counts_everything(commit: int) -> None:
    confirms = Confirms()
    confirms.add(3, commit)
    confirms.add_refused()
    assert confirms.published == 4
