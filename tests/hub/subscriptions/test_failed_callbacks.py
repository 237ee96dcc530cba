"""Subscriptions whose callbacks are given up."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from warrenmq.hub.errors import StorageFailed
from warrenmq.hub.subscriptions.failed_callbacks import FailedCallbacks

ACTIVE: Any = SimpleNamespace(subscription=SimpleNamespace(id="s1", host="callback.example"))


class Store:
    """What was done to subscriptions; it fails to pause them where `failure` is set."""

    def __init__(self, failure: StorageFailed | None = None) -> None:
        self.done: list[tuple[Any, ...]] = []
        self._failure = failure

    async def end(self, active: Any) -> None:
        self.done.append(("end", active))

    async def pause(self, active: Any, reason: str) -> None:
        if self._failure is not None:
            raise self._failure
        self.done.append(("pause", active, reason))


async def test_a_callback_that_is_gone_ends_its_subscription(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Store()
    await FailedCallbacks(cast(Any, store)).callback_gone(ACTIVE)
    assert store.done == [("end", ACTIVE)]
    assert caplog.messages == [
        "subscription s1 ends: its callback at callback.example is gone (410)"
    ]


async def test_exhausted_attempts_pause_it(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    await FailedCallbacks(cast(Any, store)).attempts_exhausted(ACTIVE, "500 twelve times")
    assert store.done == [("pause", ACTIVE, "500 twelve times")]
    assert caplog.messages == ["subscription s1 is paused: 500 twelve times"]


async def test_one_that_can_not_be_paused_is_an_error_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Store(StorageFailed("the database is away", field="database"))
    await FailedCallbacks(cast(Any, store)).attempts_exhausted(ACTIVE, "500 twelve times")
    (error,) = (one for one in caplog.records if one.levelno == logging.ERROR)
    assert "subscription s1 can't be paused" in error.getMessage()
