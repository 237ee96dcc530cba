"""The checker finds each kind of fault, and finds none in a run without."""

from __future__ import annotations

import pytest

from .checker import Arrival, Checker
from .journal import CONFIRMED, NACKED, WITHDRAWN, Journal, Route


def deliver(
    checker: Checker,
    journal: Journal,
    *numbers: int,
    queue: str = "q",
    flagged: bool = False,
    ack: bool = True,
    consumer: int = 1,
    life: int = 1,
) -> None:
    arrivals = [Arrival(journal.publisher, number, flagged) for number in numbers]
    checker.delivered(queue, consumer, arrivals, life)
    if ack:
        checker.consumed(queue, [(journal.publisher, number) for number in numbers])


def confirmed(checker: Checker, count: int, *routes: Route) -> Journal:
    journal = checker.publisher("p", routes or [Route("q")])
    journal.attempt(count)
    journal.settle(0, count - 1, CONFIRMED)
    for queue in checker.inboxes:
        checker.drained(queue, 0)
    return journal


def test_a_run_without_faults_is_valid() -> None:
    checker = Checker()
    journal = confirmed(checker, 3)
    deliver(checker, journal, 0, 1, 2)
    verdict = checker.verdict()
    assert verdict.valid and not verdict.examples
    assert (verdict.attempted, verdict.confirmed) == (3, 3)


def test_confirmed_and_not_consumed_is_lost() -> None:
    checker = Checker()
    journal = confirmed(checker, 3)
    journal.end_life()
    deliver(checker, journal, 0, 2)
    verdict = checker.verdict()
    assert verdict.lost == 1 and not verdict.valid
    assert verdict.examples == ["lost: message 1 of p (publisher 0, life 1) in q"]


def test_delivered_without_an_ack_is_lost() -> None:
    checker = Checker()
    journal = confirmed(checker, 2)
    deliver(checker, journal, 0)
    deliver(checker, journal, 1, ack=False)
    assert checker.verdict().lost == 1


def test_stretches_are_told_in_one_line() -> None:
    checker = Checker()
    journal = confirmed(checker, 10, Route("q", 2, (0,)), Route("r", 2, (1,)))
    deliver(checker, journal, 0, 8)
    deliver(checker, journal, 5, queue="r")
    verdict = checker.verdict()
    assert verdict.lost == 7
    assert verdict.examples == [
        "lost: messages 2 to 6 of p (publisher 0, life 1) in q",
        "lost: messages 1 to 3 of p (publisher 0, life 1) in r",
        "lost: messages 7 to 9 of p (publisher 0, life 1) in r",
    ]


def test_what_was_never_consumed_at_all_is_lost() -> None:
    checker = Checker()
    confirmed(checker, 70_000)
    assert checker.missing("q") == 70_000
    assert checker.verdict().lost == 70_000


def test_each_queue_has_to_get_its_copy() -> None:
    checker = Checker()
    journal = confirmed(checker, 2, Route("q"), Route("r"))
    deliver(checker, journal, 0, 1)
    deliver(checker, journal, 0, queue="r")
    assert checker.verdict().examples == ["lost: message 1 of p (publisher 0, life 1) in r"]


def test_a_queue_owes_only_its_share() -> None:
    checker = Checker()
    journal = confirmed(checker, 10, Route("q", 3, (0, 2)), Route("r", 3, (1,)))
    deliver(checker, journal, 0, 2, 3, 5, 6, 8, 9)
    deliver(checker, journal, 1, 4, queue="r")
    assert checker.verdict().examples == ["lost: message 7 of p (publisher 0, life 1) in r"]


def test_transient_messages_may_be_lost() -> None:
    checker = Checker()
    confirmed(checker, 2, Route("q", may_vanish=True))
    assert checker.verdict().valid


@pytest.mark.parametrize("fate", [NACKED, None])
def test_unconfirmed_ones_may_be_lost(fate: int | None) -> None:
    checker = Checker()
    journal = confirmed(checker, 1)
    journal.attempt(1)
    if fate is not None:
        journal.settle(1, 1, fate)
    deliver(checker, journal, 0)
    verdict = checker.verdict()
    assert verdict.valid
    assert (verdict.nacked, verdict.unknown) == ((1, 0) if fate else (0, 1))


def test_unconfirmed_ones_that_come_are_recovered() -> None:
    checker = Checker()
    journal = confirmed(checker, 1)
    journal.attempt(2)
    deliver(checker, journal, 0, 1)
    verdict = checker.verdict()
    assert verdict.valid and verdict.recovered == 1


@pytest.mark.parametrize(("number", "queue"), [(3, "q"), (1, "r"), (0, "other")])
def test_what_was_not_sent_there_is_unexpected(number: int, queue: str) -> None:
    checker = Checker()
    checker.queue("other")
    journal = confirmed(checker, 3, Route("q"), Route("r", 2, (0,)))
    deliver(checker, journal, 0, 1, 2)
    deliver(checker, journal, 0, 2, queue="r")
    deliver(checker, journal, number, queue=queue)
    verdict = checker.verdict()
    assert verdict.unexpected == 1 and not verdict.valid


def test_what_was_rolled_back_is_unexpected() -> None:
    checker = Checker()
    journal = confirmed(checker, 1)
    journal.attempt(1)
    journal.settle(1, 1, WITHDRAWN)
    deliver(checker, journal, 0, 1)
    assert checker.verdict().unexpected == 1


def test_what_comes_again_carries_the_flag() -> None:
    checker = Checker()
    journal = confirmed(checker, 1)
    deliver(checker, journal, 0)
    deliver(checker, journal, 0, flagged=True)
    verdict = checker.verdict()
    assert verdict.valid and verdict.duplicated == 1


def test_without_the_flag_it_is_a_fault() -> None:
    checker = Checker()
    journal = confirmed(checker, 1)
    deliver(checker, journal, 0, ack=False)
    deliver(checker, journal, 0)
    verdict = checker.verdict()
    assert verdict.broken == {"unflagged": 1} and not verdict.valid
    assert verdict.duplicated == 0


def test_what_was_sent_again_may_come_again() -> None:
    checker = Checker()
    journal = confirmed(checker, 1)
    journal.retry(0)
    deliver(checker, journal, 0, 0)
    verdict = checker.verdict()
    assert verdict.valid and verdict.duplicated == 1


def test_what_was_moved_again_may_come_again() -> None:
    checker = Checker()
    journal = confirmed(checker, 1, Route("q", moved=True))
    deliver(checker, journal, 0, 0)
    verdict = checker.verdict()
    assert verdict.valid and verdict.duplicated == 1


def test_first_deliveries_keep_their_order() -> None:
    checker = Checker()
    journal = confirmed(checker, 3)
    deliver(checker, journal, 0, 2, 1)
    verdict = checker.verdict()
    assert verdict.broken == {"disordered": 1} and not verdict.valid


def test_two_consumers_share_a_queue_each_in_order() -> None:
    checker = Checker()
    journal = confirmed(checker, 4)
    deliver(checker, journal, 1, 3, consumer=1)
    deliver(checker, journal, 0, 2, consumer=2)
    assert checker.verdict().valid


@pytest.mark.parametrize("strict", [False, True])
def test_redelivered_ones_are_in_order_where_nothing_is_returned(strict: bool) -> None:
    checker = Checker()
    checker.queue("q", strict=strict)
    journal = confirmed(checker, 3)
    deliver(checker, journal, 0, 2)
    deliver(checker, journal, 1, flagged=True)
    assert checker.verdict().valid is not strict


def test_an_unordered_queue_has_no_order() -> None:
    checker = Checker()
    checker.queue("q", order=False)
    journal = confirmed(checker, 3)
    deliver(checker, journal, 2, 1, 0)
    assert checker.verdict().valid


def test_a_second_answer_is_a_fault() -> None:
    checker = Checker()
    journal = confirmed(checker, 2)
    journal.settle(1, 1, CONFIRMED)
    deliver(checker, journal, 0, 1)
    assert checker.verdict().broken == {"answered": 1}


@pytest.mark.parametrize("came", [0, 1, 2])
@pytest.mark.parametrize("life", [1, 2])
def test_of_a_transaction_all_is_recovered_or_nothing(came: int, life: int) -> None:
    checker = Checker()
    journal = confirmed(checker, 1)
    journal.attempt(2)
    journal.groups.append((1, 2))
    journal.end_life()
    deliver(checker, journal, 0, *range(1, 1 + came), life=life)
    verdict = checker.verdict()
    torn = life == 2 and came == 1
    assert verdict.valid is not torn
    assert verdict.broken == ({"torn": 1} if torn else {})


def test_an_undrained_queue_is_a_fault() -> None:
    checker = Checker()
    journal = checker.publisher("p", [Route("q")])
    journal.attempt(1)
    assert checker.verdict().broken == {"undrained": 1}


def test_a_queue_that_keeps_something_is_a_fault() -> None:
    checker = Checker()
    journal = confirmed(checker, 1)
    deliver(checker, journal, 0)
    checker.drained("q", 1)
    assert checker.verdict().broken == {"remaining": 1}


def test_a_message_knows_its_life() -> None:
    journal = Journal(0, "p", [])
    for _ in range(3):
        journal.attempt(10)
        journal.end_life()
    assert [journal.life_of(number) for number in (0, 9, 10, 29, 30)] == [1, 1, 2, 3, 4]


def test_ten_million_messages_are_octets() -> None:
    checker = Checker()
    journal = confirmed(checker, 10_000_000)
    for first in range(0, 10_000_000, 2_500_000):
        deliver(checker, journal, first)
    inflow = checker.inboxes["q"].inflows[0]
    inflow.marks.extend(bytes(10_000_000 - len(inflow.marks)))
    assert len(inflow.marks) + len(journal.fates) <= 21_000_000
    assert checker.missing("q") == 10_000_000 - 4
