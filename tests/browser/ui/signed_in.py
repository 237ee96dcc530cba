"""A page of the web UI whose user is signed in."""

from __future__ import annotations

import json

from tests.browser.browsers import Page
from tests.support.server import WarrenServer

SHOWN = "document.querySelector('main.page')?.children.length"


class SignedInPage:
    """A tab with the web UI. Routes are addresses behind the `#`, such as `/queues`."""

    def __init__(self, page: Page, server: WarrenServer) -> None:
        self.page = page
        self.server = server
        self.url = f"http://localhost:{server.http_port}/"

    def open(self) -> None:
        """Opens the UI with nothing kept from before, and signs `guest` in unless he still is."""
        self.page.open(self.url)
        self.page.run("(sessionStorage.clear(), localStorage.clear())")
        self.page.wait(f"document.querySelector('.sign-in') || {SHOWN}")
        if self.page.run("document.querySelector('.sign-in') !== null"):
            self.sign_in()

    def sign_in(self, name: str = "guest", password: str = "guest", shows: str = SHOWN) -> None:
        """Signs in as a user does."""
        self.page.wait("document.querySelector('.sign-in input[name=name]')")
        self.page.type(".sign-in input[name=name]", name)
        self.page.type(".sign-in input[name=password]", password, enter=True)
        self.page.wait(shows)

    def go(self, route: str, shows: str = "document.querySelector('main.page h1')") -> None:
        """Returns when the page of the route has drawn its heading."""
        self.page.run("document.querySelector('main.page').replaceChildren()")
        self.page.run(f"(location.hash = {json.dumps(f'#{route}')}, dispatchEvent("
                      "new HashChangeEvent('hashchange')))")  # fmt: skip
        self.page.wait(shows)

    def press(self, text: str, within: str = "body") -> None:
        """Presses the button, or follows the link, with this text, as soon as it is there."""
        found = (
            f"[...(document.querySelector({json.dumps(within)})?.querySelectorAll('button, a') "
            f"?? [])].find((one) => one.innerText.trim() === {json.dumps(text)} && !one.disabled)"
        )
        self.page.act(found, "one.click()")

    def fill(self, name: str, value: str, within: str = "dialog") -> None:
        """Sets a field of a form by its name, as typing or choosing does."""
        field = f"document.querySelector({json.dumps(f'{within} [name={json.dumps(name)}]')})"
        self.page.act(
            field,
            f"one.value = {json.dumps(value)}, ['input', 'change'].forEach((kind) => "
            "one.dispatchEvent(new Event(kind, {bubbles: true})))",
        )

    def hide(self, hidden: bool) -> None:
        """Tells the page that another tab is in front, or that this one is again."""
        value = f"{{value: {json.dumps(hidden)}, configurable: true}}"
        self.page.run(
            f"(Object.defineProperty(document, 'hidden', {value}), "
            "document.dispatchEvent(new Event('visibilitychange')))"
        )

    def point(self, selector: str) -> None:
        """Moves the pointer onto an element, and leaves it there."""
        box = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect().toJSON()"
        at = self.page.run(box)
        move = {"type": "pointerMove", "x": round(at["x"]) + 5, "y": round(at["y"]) + 5}
        pointer = {"type": "pointer", "id": "mouse", "actions": [move]}
        self.page.command("input.performActions", actions=[pointer])

    def shows(self, text: str, within: str = "body") -> None:
        self.page.shows(text, within)
