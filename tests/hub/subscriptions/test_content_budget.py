"""Content for anonymous clients alone has an hourly limit."""

from __future__ import annotations

import pytest

from warrenmq.core.clock import ManualClock
from warrenmq.hub.subscriptions.content_budget import MAX_ACCOUNTS, TOTAL_FACTOR, ContentBudget
from warrenmq.hub.subscriptions.options import AnonymousClient

LIMIT = 3_600
ALICE = AnonymousClient("192.0.2.1", "alice.example", "feed.example")
OTHERS = [
    AnonymousClient("192.0.2.1", "b.example", "b.example"),
    AnonymousClient("192.0.2.2", "alice.example", "b.example"),
    AnonymousClient("192.0.2.2", "b.example", "feed.example"),
]


class Accounts:
    def __init__(self, **anonymous: list[AnonymousClient]) -> None:
        self.clock = ManualClock()
        self.anonymous = anonymous
        self.content_budget = ContentBudget(lambda key: anonymous.get(key, []), LIMIT, self.clock)


@pytest.mark.parametrize("other", OTHERS, ids=["client", "callback", "topic"])
def test_clients_that_share_an_account_wait_for_each_other(other: AnonymousClient) -> None:
    bob = AnonymousClient("192.0.2.3", "c.example", "c.example")
    accounts = Accounts(one=[ALICE], other=[other], bob=[bob], shared=[other, bob])
    content_budget = accounts.content_budget
    content_budget.charge("one", 1, LIMIT + 60)
    assert content_budget.wait_s("one", 1) == content_budget.wait_s("other", 1) == 60
    # It goes on the account of whoever has something left.
    assert content_budget.wait_s("bob", 1) == content_budget.wait_s("shared", 2) == 0
    content_budget.charge("shared", 2, LIMIT + 10)
    assert content_budget.wait_s("bob", 1) == content_budget.wait_s("shared", 2) == 10
    accounts.clock.advance(50_000)
    assert content_budget.wait_s("one", 1) == 10 and content_budget.wait_s("bob", 1) == 0


def test_content_for_a_user_too_costs_anonymous_clients_nothing() -> None:
    content_budget = Accounts(one=[ALICE]).content_budget
    content_budget.charge("one", 2, 10 * LIMIT)
    content_budget.charge("nobody's", 1, 10 * LIMIT)
    assert content_budget.wait_s("one", 1) == 0
    content_budget.charge("one", 1, 10 * LIMIT)
    assert content_budget.wait_s("one", 2) == 0 < content_budget.wait_s("one", 1)


def test_copies_are_made_on_the_account_while_there_is_room() -> None:
    content_budget = Accounts(one=[ALICE]).content_budget
    content_budget.charge("one", 1, LIMIT - 100)
    assert [content_budget.take(ALICE, 60), content_budget.take(ALICE, 60)] == [True, False]
    assert content_budget.take(ALICE, 40) and content_budget.wait_s("one", 1) == 0


def test_all_together_have_a_limit_too() -> None:
    keys = {f"k{number}": [AnonymousClient(*[f"{number}.example"] * 3)] for number in range(5)}
    content_budget = Accounts(**keys).content_budget
    for number in range(TOTAL_FACTOR):
        content_budget.charge(f"k{number}", 1, LIMIT)
    assert content_budget.wait_s("k4", 1) == 0
    content_budget.charge("k4", 1, LIMIT)
    assert content_budget.wait_s("k4", 1) == 3_600 / TOTAL_FACTOR


def test_the_number_of_accounts_is_limited() -> None:
    keys = {
        f"k{number}": [AnonymousClient(*[f"{number}.example"] * 3)]
        for number in range(MAX_ACCOUNTS)
    }
    content_budget = Accounts(**keys).content_budget
    content_budget.charge("k0", 1, LIMIT + 60)
    assert content_budget.wait_s("k0", 1) == 60
    for key in keys:
        content_budget.charge(key, 1, 0 if key == "k0" else 1)
    assert content_budget.wait_s("k0", 1) == 0  # the account of the longest ago is forgotten
