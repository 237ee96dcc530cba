from __future__ import annotations

from pathlib import Path

import pytest

from warrenmq.core.errors import ConfigError
from warrenmq.hub.keys.seal import PREFIX, Sealer, is_sealed


@pytest.mark.parametrize("text", ["", "s3cret", "caf\u00e9 \U0001f430", "x" * 10_000, PREFIX])
def test_a_text_is_encrypted_and_opens_after_a_restart(
    sealer: Sealer, tmp_path: Path, text: str
) -> None:
    assert not (tmp_path / "hub.key").exists()
    one, other = sealer.seal(text, "row"), sealer.seal(text, "row")
    assert is_sealed(one) and one != other
    assert text not in one.removeprefix(PREFIX) or not text
    assert sealer.open(one, "row") == Sealer(tmp_path / "hub.key").open(one, "row") == text
    assert not is_sealed("s3cret")


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
