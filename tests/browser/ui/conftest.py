"""The web UI in Chromium, against a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.browsers import Browser, missing
from tests.support import node
from tests.support.server import WarrenServer

from .signed_in import SignedInPage


@pytest.fixture(scope="module")
def warren() -> Iterator[WarrenServer]:
    """One Warren for a file: lists have what its tests have made, and nothing else."""
    with WarrenServer() as server:
        yield server


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One Chromium for a whole run."""
    if reason := missing("chromium"):
        pytest.skip(reason)
    with Browser("chromium") as browser:
        yield browser


@pytest.fixture
def ui(chromium: Browser, warren: WarrenServer) -> Iterator[SignedInPage]:
    """A page where `guest` is signed in; after a test its console may have no error."""
    signed_in = SignedInPage(chromium.new_page(), warren)
    signed_in.open()
    yield signed_in
    errors = chromium.close_pages()
    assert not errors


@pytest.fixture(scope="module")
def axe() -> str:
    """The script that audits pages for what people with disabilities need."""
    if reason := node.missing():
        pytest.skip(reason)
    return (node.installed_packages() / "node_modules/axe-core/axe.min.js").read_text()


@pytest.fixture(scope="module")
def tab(chromium: Browser, warren: WarrenServer) -> SignedInPage:
    """One signed-in page for all audits."""
    signed_in = SignedInPage(chromium.new_page(), warren)
    signed_in.page.resize(1360, 900)  # else the navigation is folded, and not audited
    signed_in.open()
    return signed_in
