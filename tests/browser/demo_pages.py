"""What tests do with demos: open one, sign in, publish from outside."""

from __future__ import annotations

import httpx

from tests.support.server import WarrenServer

from .browsers import Page

LOGIN = ("guest", "guest")


def sign_in(page: Page) -> None:
    """As `guest`, which the form proposes."""
    page.wait("document.querySelector('#sign-in button')")
    page.click("#sign-in button")


def open_demo(page: Page, hub_url: str, name: str) -> Page:
    """Opens a demo that asks for a login at once, and signs in."""
    page.open(f"{hub_url}demos/{name}.html")
    sign_in(page)
    page.shows("Connected", "#state")
    return page


def post(warren: WarrenServer, resource: str, key: str, body: str) -> None:
    """Publishes as a script does."""
    url = f"{warren.http_url}/endpoint/{resource}"
    # Without certificates, which would be loaded each time.
    answer = httpx.post(url, params={"hub.topic": key}, content=body, auth=LOGIN, verify=False)
    answer.raise_for_status()
