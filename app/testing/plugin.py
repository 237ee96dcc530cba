"""The pytest plugin: the fixtures `warren`, `warren_vhost` and `warren_url`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from .server import VirtualHost, Warren

_SCOPE: Final = "warren_scope"
_SETTINGS: Final = "warren_settings"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        _SCOPE, "How long one Warren lives: session (the default), module or function.",
        default="session",
    )  # fmt: skip
    parser.addini(_SETTINGS, "Settings of it, a line each: max_message_bytes=1000.", "linelist")


def _scope(fixture_name: str, config: pytest.Config) -> str:
    return str(config.getini(_SCOPE))


@pytest.fixture(scope=_scope)  # type: ignore[arg-type]
def warren(pytestconfig: pytest.Config) -> Iterator[Warren]:
    """A Warren on free ports; each process of xdist has its own."""
    from .server import Warren  # late: most test runs start none

    settings: dict[str, object] = {}
    for line in pytestconfig.getini(_SETTINGS):
        name, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"{_SETTINGS}: '{line}' has no =: give NAME=VALUE")
        settings[name.strip()] = value.strip()
    with Warren(settings=settings) as server:
        yield server


@pytest.fixture
def warren_vhost(warren: Warren) -> Iterator[VirtualHost]:
    """An empty virtual host of the test's own."""
    with warren.vhost() as vhost:
        yield vhost


@pytest.fixture
def warren_url(warren_vhost: VirtualHost) -> str:
    """The AMQP URL of an empty virtual host of the test's own."""
    return warren_vhost.amqp_url
