"""The server that most tests of faults need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server import WarrenServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WarrenServer]:
    with WarrenServer(dev=True, data=tmp_path / "data") as server:
        yield server
