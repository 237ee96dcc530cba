"""One process at a time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warren.app.data_directory import held
from warren.core.errors import ConfigError


def test_made_and_given_back(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    for _ in range(2):
        with held(str(path)) as directory:
            assert directory == path
            assert directory.is_dir()


def test_held_by_another(tmp_path: Path) -> None:
    message = rf"in use by another process \(pid {os.getpid()}\)"
    with held(str(tmp_path)), pytest.raises(ConfigError, match=message), held(str(tmp_path)):
        pass


def test_unusable(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ConfigError, match="data directory"), held(str(file)):
        pass
