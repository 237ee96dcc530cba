"""These processes are programs of their own, as in a server that nobody tests."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def copied_workers() -> None:
    """None are copies."""
