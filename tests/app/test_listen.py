"""Listening sockets on loopback."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from typing import Any

import pytest

from warrenmq.app.http.listen import listen, name_of, port_of
from warrenmq.core.errors import ConfigError


@contextmanager
def listening(host: str, port: int = 0) -> Iterator[list[socket.socket]]:
    listeners = listen(host, port, "http")
    try:
        yield listeners
    finally:
        for listener in listeners:
            listener.close()


def fail_ipv6(monkeypatch: pytest.MonkeyPatch, errors: Iterator[OSError]) -> None:
    """Lets IPv6 sockets meet these errors as they bind, one after the other, and then none."""
    bind = socket.socket.bind

    def bind_or_fail(listener: socket.socket, address: Any) -> None:
        if listener.family == socket.AF_INET6 and (error := next(errors, None)):
            raise error
        bind(listener, address)

    monkeypatch.setattr(socket.socket, "bind", bind_or_fail)


@pytest.fixture
def no_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_ipv6(monkeypatch, repeat(OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")))


def test_localhost_is_both_on_one_port() -> None:
    if not socket.has_ipv6:
        pytest.skip("this Python has no IPv6")
    with listening("localhost") as listeners:
        port = port_of(listeners)
        assert [name_of(listener) for listener in listeners] == [
            f"127.0.0.1:{port}",
            f"[::1]:{port}",
        ]
        for host in ("127.0.0.1", "::1"):
            socket.create_connection((host, port), timeout=5).close()


def test_localhost_without_ipv6(no_ipv6: None) -> None:
    with listening("localhost") as listeners:
        assert [listener.family for listener in listeners] == [socket.AF_INET]


def test_named_address_that_is_not_here(no_ipv6: None) -> None:
    with pytest.raises(ConfigError, match=r"http: can't listen on ::1 port 0: Cannot assign"):
        listen("::1", 0, "http")


def test_port_in_use() -> None:
    with listening("127.0.0.1") as listeners:
        port = port_of(listeners)
        message = (
            rf"http: can't listen on localhost port {port}: Address already in use; .+ --http-port$"
        )
        with pytest.raises(ConfigError, match=message):
            listen("localhost", port, "http")


def test_another_free_port_is_chosen_if_one_address_has_it_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = iter([OSError(errno.EADDRINUSE, "Address already in use")])
    fail_ipv6(monkeypatch, taken)
    with listening("localhost") as listeners:
        assert port_of(listeners) > 0
    assert next(taken, None) is None


def test_an_unknown_host_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^host 'no\.such\.host\.invalid': "):
        listen("no.such.host.invalid", 0, "http")
