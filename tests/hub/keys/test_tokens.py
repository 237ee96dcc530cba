from __future__ import annotations

import base64
import os
import stat
from pathlib import Path

import pytest

from warrenmq.core.clock import ManualClock
from warrenmq.hub.errors import TokenRefused
from warrenmq.hub.keys.tokens import Grant, ShortcutTokens
from warrenmq.hub.requests import Resource

IN = Resource("/", "q", "caf\u00e9/in")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def tokens(tmp_path: Path, clock: ManualClock) -> ShortcutTokens:
    return ShortcutTokens(tmp_path / "data" / "hub.key", 300, clock)


def test_nothing_of_it_can_be_read(tokens: ShortcutTokens) -> None:
    first, second = (tokens.issue("subscribe", IN) for _ in range(2))
    assert first != second
    token = first.removeprefix("wrn1.")
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    for text in (b"subscribe", b"caf"):
        assert text not in raw


def test_changed_tokens_are_not_read(tokens: ShortcutTokens) -> None:
    token = tokens.issue("subscribe", IN)
    for at in range(len(token) - 1):  # the last one may have unused bits
        other = "A" if token[at] != "A" else "B"
        assert tokens.read(token[:at] + other + token[at + 1 :]) is None
    for text in ("", "wrn1.", "wrn1.AAAA", "wrn1." + "A" * 100, "wrn1.\u00e9", "other", "wrn1.!!"):
        assert tokens.read(text) is None


def test_a_token_lasts_300_seconds(tokens: ShortcutTokens, clock: ManualClock) -> None:
    token = tokens.issue("unsubscribe", IN)
    clock.advance(300_000)
    assert tokens.read(token) == Grant("unsubscribe", IN)
    clock.advance(1_000)
    with pytest.raises(TokenRefused, match="expired"):
        tokens.read(token)


def test_the_key_is_kept_over_a_restart(
    tokens: ShortcutTokens, tmp_path: Path, clock: ManualClock
) -> None:
    token = tokens.issue("subscribe", IN)
    key_file = tmp_path / "data" / "hub.key"
    assert ShortcutTokens(key_file, 300, clock).read(token) == Grant("subscribe", IN)
    assert ShortcutTokens(tmp_path / "other.key", 300, clock).read(token) is None
    if os.name == "posix":
        assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
