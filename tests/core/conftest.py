"""The broker on a durable store of many tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .life import Life


@pytest.fixture
def life(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Life]:
    """A broker on a durable store, with the durable queue `q`; see `segments_of`."""
    found = Life(tmp_path / "log", segment_bytes=getattr(request, "param", 2**26))
    found.declare("q")
    yield found
    found.abandon()
