"""Handlers that wait for something else learn that their client has gone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from warrenmq.app.access.local_requests import CYCLE
from warrenmq.app.http.disconnects import tell_gone, when_gone


@pytest.mark.parametrize("is_early", [True, False])
def test_a_disconnect_is_notified_once(*, is_early: bool) -> None:
    """A long poll whose client has gone while its user was looked up must not take messages."""
    cycle = SimpleNamespace(disconnected=is_early)
    scope: dict[str, Any] = {"extensions": {CYCLE: {"cycle": cycle}}}
    told: list[bool] = []
    when_gone(scope, lambda: told.append(True))
    assert told == [True] * is_early
    tell_gone(scope["extensions"])
    tell_gone(scope["extensions"])
    assert told == [True]
