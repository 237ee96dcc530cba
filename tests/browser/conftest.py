"""Browsers that tests share, and a hub for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.server import WarrenServer

from .browsers import Browser, Page, missing


@pytest.fixture(scope="session")
def warren() -> Iterator[WarrenServer]:
    """One Warren for all pages; tests that restart it leave it running."""
    with WarrenServer() as server:
        yield server


# Pages are looked at in Chromium; that they work in Firefox too is shown at length.
@pytest.fixture(
    scope="session",
    params=["chromium", pytest.param("firefox", marks=pytest.mark.thorough)],
)
def running_browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """Each of the two for a whole run."""
    if reason := missing(request.param):
        pytest.skip(reason)
    with Browser(request.param) as browser:
        yield browser


@pytest.fixture
def browser(running_browser: Browser) -> Iterator[Browser]:
    """A browser without a page; after a test no console may have an error."""
    yield running_browser
    errors = running_browser.close_pages()
    assert not errors


@pytest.fixture
def page(browser: Browser) -> Page:
    return browser.new_page()


@pytest.fixture
def hub_url(warren: WarrenServer) -> str:
    """As users open it, with a slash at the end."""
    return f"http://localhost:{warren.http_port}/"
