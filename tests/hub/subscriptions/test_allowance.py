"""What is published for strangers alone is limited by the hour."""

from __future__ import annotations

import pytest

from warrenmq.core.clock import ManualClock
from warrenmq.hub.subscriptions.allowance import MAX_ACCOUNTS, TOTAL_FACTOR, Allowance
from warrenmq.hub.subscriptions.options import Stranger

LIMIT = 3_600
ALICE = Stranger("192.0.2.1", "alice.example", "feed.example")
OTHERS = [
    Stranger("192.0.2.1", "b.example", "b.example"),
    Stranger("192.0.2.2", "alice.example", "b.example"),
    Stranger("192.0.2.2", "b.example", "feed.example"),
]


class Accounts:
    def __init__(self, **strangers: list[Stranger]) -> None:
        self.clock = ManualClock()
        self.strangers = strangers
        self.allowance = Allowance(lambda key: strangers.get(key, []), LIMIT, self.clock)


@pytest.mark.parametrize("other", OTHERS, ids=["client", "callback", "topic"])
def test_what_one_has_spent_others_wait_for_who_share_anything(other: Stranger) -> None:
    bob = Stranger("192.0.2.3", "c.example", "c.example")
    accounts = Accounts(one=[ALICE], other=[other], bob=[bob], shared=[other, bob])
    allowance = accounts.allowance
    allowance.charge("one", 1, LIMIT + 60)
    assert allowance.wait_s("one", 1) == allowance.wait_s("other", 1) == 60
    # It goes on the account of whoever has something left.
    assert allowance.wait_s("bob", 1) == allowance.wait_s("shared", 2) == 0
    allowance.charge("shared", 2, LIMIT + 10)
    assert allowance.wait_s("bob", 1) == allowance.wait_s("shared", 2) == 10
    accounts.clock.advance(50_000)
    assert allowance.wait_s("one", 1) == 10 and allowance.wait_s("bob", 1) == 0


def test_what_a_user_gets_too_costs_strangers_nothing() -> None:
    allowance = Accounts(one=[ALICE]).allowance
    allowance.charge("one", 2, 10 * LIMIT)
    allowance.charge("nobody's", 1, 10 * LIMIT)
    assert allowance.wait_s("one", 1) == 0
    allowance.charge("one", 1, 10 * LIMIT)
    assert allowance.wait_s("one", 2) == 0 < allowance.wait_s("one", 1)


def test_copies_are_made_on_the_account_while_there_is_room() -> None:
    allowance = Accounts(one=[ALICE]).allowance
    allowance.charge("one", 1, LIMIT - 100)
    assert [allowance.take(ALICE, 60), allowance.take(ALICE, 60)] == [True, False]
    assert allowance.take(ALICE, 40) and allowance.wait_s("one", 1) == 0


def test_all_together_have_a_limit_too() -> None:
    keys = {f"k{number}": [Stranger(*[f"{number}.example"] * 3)] for number in range(5)}
    allowance = Accounts(**keys).allowance
    for number in range(TOTAL_FACTOR):
        allowance.charge(f"k{number}", 1, LIMIT)
    assert allowance.wait_s("k4", 1) == 0
    allowance.charge("k4", 1, LIMIT)
    assert allowance.wait_s("k4", 1) == 3_600 / TOTAL_FACTOR


def test_there_are_only_so_many_accounts() -> None:
    keys = {f"k{number}": [Stranger(*[f"{number}.example"] * 3)] for number in range(MAX_ACCOUNTS)}
    allowance = Accounts(**keys).allowance
    for key in keys:
        allowance.charge(key, 1, 1)
    assert len(allowance._spent) == MAX_ACCOUNTS
