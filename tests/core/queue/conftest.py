from __future__ import annotations

import pytest

from .support import FakeContext, Session


@pytest.fixture
def context() -> FakeContext:
    return FakeContext()


@pytest.fixture
def session() -> Session:
    return Session()
