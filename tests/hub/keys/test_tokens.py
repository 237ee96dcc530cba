from __future__ import annotations

import base64
import os
import stat
from pathlib import Path

import pytest

from warrenmq.core.clock import ManualClock
from warrenmq.hub.errors import TokenRefused
from warrenmq.hub.keys.tokens import Grant, Tokens
from warrenmq.hub.requests import Resource

IN = Resource("/", "q", "caf\u00e9/in")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def tokens(tmp_path: Path, clock: ManualClock) -> Tokens:
    return Tokens(tmp_path / "data" / "hub.key", 300, clock)


def test_a_token_tells_what_it_was_made_for(tokens: Tokens) -> None:
    assert tokens.read(tokens.issue("subscribe", IN)) == Grant("subscribe", IN)


def test_nothing_of_it_can_be_read(tokens: Tokens) -> None:
    token = tokens.issue("subscribe", IN).removeprefix("wrn1.")
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    for text in (b"subscribe", b"caf"):
        assert text not in raw


def test_two_tokens_differ(tokens: Tokens) -> None:
    assert tokens.issue("subscribe", IN) != tokens.issue("subscribe", IN)


def test_every_changed_character_makes_it_somebody_elses(tokens: Tokens) -> None:
    token = tokens.issue("subscribe", IN)
    for place in range(len(token) - 1):  # the last one may have unused bits
        other = "A" if token[place] != "A" else "B"
        assert tokens.read(token[:place] + other + token[place + 1 :]) is None


@pytest.mark.parametrize(
    "text", ["", "wrn1.", "wrn1.AAAA", "wrn1." + "A" * 100, "wrn1.\u00e9", "other", "wrn1.!!!!"]
)
def test_other_strings_are_somebody_elses(tokens: Tokens, text: str) -> None:
    assert tokens.read(text) is None


def test_a_token_lasts_300_seconds(tokens: Tokens, clock: ManualClock) -> None:
    token = tokens.issue("unsubscribe", IN)
    clock.advance(300_000)
    assert tokens.read(token) == Grant("unsubscribe", IN)
    clock.advance(1_000)
    with pytest.raises(TokenRefused, match="expired"):
        tokens.read(token)


def test_the_key_outlives_a_restart_and_is_the_owners_alone(
    tokens: Tokens, tmp_path: Path, clock: ManualClock
) -> None:
    token = tokens.issue("subscribe", IN)
    key_file = tmp_path / "data" / "hub.key"
    assert Tokens(key_file, 300, clock).read(token) == Grant("subscribe", IN)
    assert Tokens(tmp_path / "other.key", 300, clock).read(token) is None
    if os.name == "posix":
        assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
