from __future__ import annotations

import stat
from pathlib import Path

import pytest

from warrenmq.core.errors import ConfigError
from warrenmq.hub.keys.key_file import load_key
from warrenmq.hub.keys.seal import PREFIX, Sealer, is_sealed


@pytest.mark.parametrize("text", ["", "s3cret", "caf\u00e9 \U0001f430", "x" * 10_000, PREFIX])
def test_what_is_sealed_opens(sealer: Sealer, text: str) -> None:
    assert sealer.open(sealer.seal(text, "row"), "row") == text


def test_sealed_texts_are_told_from_others(sealer: Sealer) -> None:
    assert is_sealed(sealer.seal("s3cret", "row")) and not is_sealed("s3cret")


def test_nothing_of_the_text_is_seen(sealer: Sealer) -> None:
    one, other = sealer.seal("s3cret", "row"), sealer.seal("s3cret", "row")
    assert one != other and "s3cret" not in one


def test_it_opens_after_a_restart(sealer: Sealer, tmp_path: Path) -> None:
    sealed = sealer.seal("s3cret", "row")
    assert Sealer(tmp_path / "hub.key").open(sealed, "row") == "s3cret"


def test_the_text_of_another_row_is_refused(sealer: Sealer) -> None:
    with pytest.raises(ConfigError, match="can't be opened") as caught:
        sealer.open(sealer.seal("s3cret", "row"), "other")
    assert "s3cret" not in str(caught.value)


def test_another_key_is_refused_and_named(sealer: Sealer, tmp_path: Path) -> None:
    other = Sealer(tmp_path / "other.key")
    with pytest.raises(ConfigError, match="other.key is not their key"):
        other.open(sealer.seal("s3cret", "row"), "row")


@pytest.mark.parametrize("damaged", ["", "AAAA", "A", "!!!!", "\u00e9"])
def test_a_damaged_text_is_refused(sealer: Sealer, damaged: str) -> None:
    with pytest.raises(ConfigError, match="can't be opened"):
        sealer.open(PREFIX + damaged, "row")


def test_the_key_is_made_at_the_first_use_and_is_the_owners_alone(
    sealer: Sealer, tmp_path: Path
) -> None:
    key_file = tmp_path / "hub.key"
    assert not key_file.exists()
    sealer.seal("s3cret", "row")
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert sealer._load() != load_key(key_file)
