"""The checker finds each kind of fault, and finds none in a run without."""

from __future__ import annotations

import pytest

from .checker import Arrival, Checker
from .journal import CONFIRMED, NACKED, WITHDRAWN, Journal, Route


@pytest.fixture
def checker() -> Checker:
    return Checker()


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


def test_a_run_without_faults_is_valid(checker: Checker) -> None:
    journal = confirmed(checker, 3)
    deliver(checker, journal, 0, 1, 2)
    verdict = checker.verdict()
    assert verdict.valid and not verdict.examples
    assert (verdict.attempted, verdict.confirmed) == (3, 3)


def test_confirmed_and_not_consumed_is_lost(checker: Checker) -> None:
    journal = confirmed(checker, 3)
    journal.end_life()
    deliver(checker, journal, 0, 2)
    verdict = checker.verdict()
    assert verdict.lost == 1 and not verdict.valid
    assert verdict.examples == ["lost: message 1 of p (publisher 0, life 1) in q"]


def test_ranges_are_reported_in_one_line(checker: Checker) -> None:
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


def test_messages_never_consumed_are_lost(checker: Checker) -> None:
    confirmed(checker, 70_000)
    assert checker.missing("q") == 70_000
    assert checker.verdict().lost == 70_000


def test_transient_messages_may_be_lost(checker: Checker) -> None:
    confirmed(checker, 2, Route("q", may_vanish=True))
    assert checker.verdict().valid


@pytest.mark.parametrize("fate", [NACKED, None])
def test_unconfirmed_ones_may_be_lost(checker: Checker, fate: int | None) -> None:
    journal = confirmed(checker, 1)
    journal.attempt(1)
    if fate is not None:
        journal.settle(1, 1, fate)
    deliver(checker, journal, 0)
    verdict = checker.verdict()
    assert verdict.valid
    assert (verdict.nacked, verdict.unknown) == ((1, 0) if fate else (0, 1))


def test_unconfirmed_ones_that_come_are_recovered(checker: Checker) -> None:
    journal = confirmed(checker, 1)
    journal.attempt(2)
    deliver(checker, journal, 0, 1)
    verdict = checker.verdict()
    assert verdict.valid and verdict.recovered == 1


@pytest.mark.parametrize(("number", "queue"), [(3, "q"), (1, "r"), (0, "other")])
def test_a_message_in_the_wrong_queue_is_unexpected(
    checker: Checker, number: int, queue: str
) -> None:
    checker.queue("other")
    journal = confirmed(checker, 3, Route("q"), Route("r", 2, (0,)))
    deliver(checker, journal, 0, 1, 2)
    deliver(checker, journal, 0, 2, queue="r")
    deliver(checker, journal, number, queue=queue)
    verdict = checker.verdict()
    assert verdict.unexpected == 1 and not verdict.valid


def test_a_rolled_back_message_is_unexpected(checker: Checker) -> None:
    journal = confirmed(checker, 1)
    journal.attempt(1)
    journal.settle(1, 1, WITHDRAWN)
    deliver(checker, journal, 0, 1)
    assert checker.verdict().unexpected == 1


@pytest.mark.parametrize(
    ("route", "is_retried", "is_flagged", "is_acked", "broken"),
    [
        (Route("q"), False, True, True, {}),
        (Route("q"), False, False, False, {"unflagged": 1}),
        (Route("q"), True, False, True, {}),
        (Route("q", moved=True), False, False, True, {}),
    ],
)
def test_a_second_delivery_is_flagged_unless_it_was_sent_again(
    checker: Checker,
    route: Route,
    is_retried: bool,
    is_flagged: bool,
    is_acked: bool,
    broken: dict[str, int],
) -> None:
    journal = confirmed(checker, 1, route)
    if is_retried:
        journal.retry(0)
    deliver(checker, journal, 0, ack=is_acked)
    deliver(checker, journal, 0, flagged=is_flagged)
    verdict = checker.verdict()
    assert (verdict.broken, verdict.valid) == (broken, not broken)
    assert verdict.duplicated == is_acked


def test_first_deliveries_keep_their_order(checker: Checker) -> None:
    journal = confirmed(checker, 3)
    deliver(checker, journal, 0, 2, 1)
    verdict = checker.verdict()
    assert verdict.broken == {"disordered": 1} and not verdict.valid


def test_two_consumers_share_a_queue_each_in_order(checker: Checker) -> None:
    journal = confirmed(checker, 4)
    deliver(checker, journal, 1, 3, consumer=1)
    deliver(checker, journal, 0, 2, consumer=2)
    assert checker.verdict().valid


@pytest.mark.parametrize("strict", [False, True])
def test_redelivered_ones_are_in_order_where_nothing_is_returned(
    checker: Checker, strict: bool
) -> None:
    checker.queue("q", strict=strict)
    journal = confirmed(checker, 3)
    deliver(checker, journal, 0, 2)
    deliver(checker, journal, 1, flagged=True)
    assert checker.verdict().valid is not strict


def test_an_unordered_queue_has_no_order(checker: Checker) -> None:
    checker.queue("q", order=False)
    journal = confirmed(checker, 3)
    deliver(checker, journal, 2, 1, 0)
    assert checker.verdict().valid


def test_a_second_answer_is_a_fault(checker: Checker) -> None:
    journal = confirmed(checker, 2)
    journal.settle(1, 1, CONFIRMED)
    deliver(checker, journal, 0, 1)
    assert checker.verdict().broken == {"answered": 1}


@pytest.mark.parametrize("came", [0, 1, 2])
@pytest.mark.parametrize("life", [1, 2])
def test_of_a_transaction_all_is_recovered_or_nothing(
    checker: Checker, came: int, life: int
) -> None:
    journal = confirmed(checker, 1)
    journal.attempt(2)
    journal.groups.append((1, 2))
    journal.end_life()
    deliver(checker, journal, 0, *range(1, 1 + came), life=life)
    verdict = checker.verdict()
    torn = life == 2 and came == 1
    assert verdict.valid is not torn
    assert verdict.broken == ({"torn": 1} if torn else {})


def test_an_undrained_queue_is_a_fault(checker: Checker) -> None:
    journal = checker.publisher("p", [Route("q")])
    journal.attempt(1)
    assert checker.verdict().broken == {"undrained": 1}


def test_a_queue_that_keeps_something_is_a_fault(checker: Checker) -> None:
    journal = confirmed(checker, 1)
    deliver(checker, journal, 0)
    checker.drained("q", 1)
    assert checker.verdict().broken == {"remaining": 1}
