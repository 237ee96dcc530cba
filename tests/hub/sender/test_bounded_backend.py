from __future__ import annotations

from typing import Any

import httpcore
import pytest

from warren.hub.sender.bounded_backend import _BoundedStream


class Closed(httpcore.AsyncNetworkStream):
    """What anyio gives when the peer has closed as soon as it accepted."""

    def get_extra_info(self, info: str) -> Any:
        raise AttributeError("'NoneType' object has no attribute 'getpeername'")


def test_a_peer_that_has_closed_at_once_is_an_error_of_the_connection() -> None:
    with pytest.raises(httpcore.ReadError):
        _BoundedStream(Closed(), 100).get_extra_info("ssl_object")
