from __future__ import annotations

import stat
from pathlib import Path

import pytest

from warrenmq.hub.keys.key_file import load_key


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "hub.key"


def test_the_key_is_made_once_and_is_the_owners_alone(path: Path) -> None:
    key = load_key(path)
    assert len(key) == 32 and load_key(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["hub.key"]


def test_two_files_have_two_keys(path: Path) -> None:
    assert load_key(path) != load_key(path.with_name("other.key"))


def test_a_key_that_is_there_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"k" * 32)
    assert load_key(path) == b"k" * 32 == path.read_bytes()


def test_what_a_crash_left_half_written_is_no_key(path: Path) -> None:
    path.parent.mkdir()
    left = path.with_suffix(".new")
    left.write_bytes(b"half")
    left.chmod(0o644)
    assert len(load_key(path)) == 32 and not left.exists()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
