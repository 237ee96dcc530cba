"""A server of a stream of fifty messages, and no breaks between attempts to reach it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from warrenmq.hub.pipeline import client, http_client

from .fake_server import FakeServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    monkeypatch.setattr(http_client, "WAITS_S", (0.0, 0.0, 0.1))
    monkeypatch.setattr(client, "PATIENCE_S", 0.2)
    with FakeServer() as fake:
        yield fake
