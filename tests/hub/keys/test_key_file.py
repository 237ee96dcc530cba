from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from warrenmq.hub.keys.key_file import load_key


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "hub.key"


def test_the_key_is_made_once_and_is_the_owners_alone(path: Path) -> None:
    key = load_key(path)
    assert len(key) == 32 and load_key(path) == key == path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["hub.key"]
    assert load_key(path.with_name("other.key")) != key


def test_a_partly_written_key_file_is_replaced(path: Path) -> None:
    path.parent.mkdir()
    left = path.with_suffix(".new")
    left.write_bytes(b"half")
    left.chmod(0o644)
    assert len(load_key(path)) == 32 and not left.exists()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_threads_that_need_it_at_once_get_one_key(tmp_path: Path) -> None:
    for number in range(20):
        path = tmp_path / str(number) / "key"
        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(load_key, [path] * 8))) == 1
