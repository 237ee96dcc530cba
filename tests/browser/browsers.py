"""The system's Chromium and Firefox, without a screen, and the pages that are open in them.

They reach this machine alone: everything else would go through a proxy that is not there.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from urllib.request import Request, urlopen

from tests.support.ports import free_port
from tests.support.process import terminate, wait_until

from .bidi import CommandError, Connection, Event

START_LIMIT_S = 60.0
STOP_LIMIT_S = 60.0
WAIT_LIMIT_S = 60.0
NO_PROXY = "127.0.0.1:9"
"""The port of the discard service, which nobody runs."""
PACKAGES = {"chromium": ("chromium", "chromium-driver"), "firefox": ("firefox-esr",)}
"""Of Debian; programs have the names of their packages there, but for the driver."""
PROGRAMS = {"chromium": ("chromium", "chromedriver"), "firefox": ("firefox-esr",)}
CHROMIUM = (
    "--headless=new",
    "--no-sandbox",  # refuses to run as root, as tests in a container do
    "--disable-dev-shm-usage",
    "--disable-gpu",
    f"--proxy-server={NO_PROXY}",
)
FIREFOX = {
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "remote.active-protocols": 1,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.safebrowsing.update.enabled": False,
    "browser.startup.page": 0,
}
# What a policy for content refuses is only in the console, which BiDi does not always pass on.
REPORT_REFUSALS = """() => addEventListener('securitypolicyviolation', (event) => {
  console.error(`refused by the policy: ${event.violatedDirective} ${event.blockedURI}`);
})"""
FORGIVEN = "favicon.ico"


def missing(name: str) -> str:
    """Names what is not installed, and how it is; empty when nothing is missing."""
    absent = [program for program in PROGRAMS[name] if shutil.which(program) is None]
    packages = " ".join(PACKAGES[name])
    return f"not installed: {', '.join(absent)}; apt install {packages}" if absent else ""


class Page:
    """A tab. What its console calls an error is kept in `errors`."""

    def __init__(self, browser: Browser, context: str) -> None:
        self._browser = browser
        self.context = context
        self.errors: list[str] = []

    def open(self, url: str) -> None:
        """Returns when the page and what it refers to are loaded."""
        self.command("browsingContext.navigate", url=url, wait="complete")

    def reload(self) -> None:
        self.command("browsingContext.reload", wait="complete")

    def run(self, expression: str) -> Any:
        """Returns the value of an expression, awaited, as JSON can hold it.

        Raises `CommandError` with the exception that it throws.
        """
        wrapped = f"(async () => JSON.stringify((await ({expression})) ?? null))()"
        answer = self._browser.connection.command(
            "script.evaluate",
            expression=wrapped,
            target={"context": self.context},
            awaitPromise=True,
        )
        if answer["type"] == "exception":
            raise CommandError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])

    def wait(self, condition: str, limit_s: float = WAIT_LIMIT_S) -> None:
        """Waits until an expression is true; a page that is being loaded is asked again."""

        def holds() -> bool:
            try:
                return bool(self.run(f"Boolean(await ({condition}))"))
            except CommandError:
                return False

        try:
            wait_until(holds, limit_s, condition)
        except TimeoutError as error:
            error.add_note(f"the page says: {self.text()}\nits console: {self.errors}")
            raise

    def shows(self, text: str, within: str = "body") -> None:
        """Waits until the element shows the text."""
        element = f"document.querySelector({json.dumps(within)})"
        self.wait(f"{element}.innerText.includes({json.dumps(text)})")

    def text(self) -> str:
        return str(self.run("document.body.innerText"))

    def act(self, element: str, action: str) -> None:
        """Waits for an element, an expression, and acts on it as `one`.

        Both happen in one turn of the page, which can't draw the element anew between them.
        """
        self.wait(f"((one) => Boolean(one) && ({action}, true))({element})")

    def click(self, selector: str) -> None:
        """Clicks on an element as soon as it is there."""
        self.act(f"document.querySelector({json.dumps(selector)})", "one.click()")

    def type(self, selector: str, text: str, *, enter: bool = False) -> None:
        """Replaces what is in a field, key by key."""
        self.act(f"document.querySelector({json.dumps(selector)})", "one.focus(), one.select()")
        keys = [*text, *(["\ue007"] if enter else [])]
        strokes = [
            {"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")
        ] or [{"type": kind, "value": "\ue003"} for kind in ("keyDown", "keyUp")]
        keyboard = {"type": "key", "id": "keyboard", "actions": strokes}
        self.command("input.performActions", actions=[keyboard])

    def screenshot(self, path: Path) -> None:
        answer = self.command("browsingContext.captureScreenshot")
        path.write_bytes(base64.b64decode(answer["data"]))

    def resize(self, width: int, height: int) -> None:
        self.command("browsingContext.setViewport", viewport={"width": width, "height": height})

    def show(self) -> None:
        """Brings the tab to the front."""
        self.command("browsingContext.activate")

    def close(self) -> None:
        """Closes the tab as a user does."""
        self.command("browsingContext.close")
        self._browser.pages.pop(self.context, None)

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.connection.command(method, context=self.context, **parameters)


class Browser:
    """A running browser with an empty profile. The end of the block ends it."""

    connection: Connection

    def __init__(self, name: str) -> None:
        self.name = name
        self.pages: dict[str, Page] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="warren-browser-")
        self._log = Path(self._folder.name, "output.log")

    def new_page(self, kind: Literal["tab", "window"] = "tab") -> Page:
        context = self.connection.command("browsingContext.create", type=kind)["context"]
        return self.pages.setdefault(context, Page(self, context))

    def close_pages(self) -> list[str]:
        """Closes all tabs that tests have opened, and returns what their consoles had."""
        errors = [error for page in self.pages.values() for error in page.errors]
        for page in list(self.pages.values()):
            page.close()
        return errors

    def __enter__(self) -> Self:
        try:
            url = self._start_chromium() if self.name == "chromium" else self._start_firefox()
            self.connection = Connection(url, self._on_event)
            if self.name == "firefox":
                self.connection.command("session.new", capabilities={})
            self.connection.command("session.subscribe", events=["log.entryAdded"])
            self.connection.command("script.addPreloadScript", functionDeclaration=REPORT_REFUSALS)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.connection.command("browser.close" if self.name == "firefox" else "session.end")
            self.connection.close()
        finally:
            self._stop()

    def _on_event(self, method: str, event: Event) -> None:
        page = self.pages.get(event["source"].get("context", ""))
        text = str(event.get("text"))
        if page is not None and event["level"] == "error" and FORGIVEN not in text:
            page.errors.append(text)

    def _start(self, command: Sequence[str]) -> None:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, "TMPDIR": self._folder.name},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _wait_for(self, pattern: str) -> str:
        def found() -> bool:
            assert self._process.poll() is None, self._log.read_text(errors="replace")
            return re.search(pattern, self._log.read_text(errors="replace")) is not None

        wait_until(found, START_LIMIT_S, f"{self.name} says {pattern}")
        match = re.search(pattern, self._log.read_text(errors="replace"))
        assert match is not None
        return match[0]

    def _start_firefox(self) -> str:
        profile = Path(self._folder.name, "profile")
        profile.mkdir()
        preferences = [f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in FIREFOX.items()]
        (profile / "user.js").write_text("\n".join(preferences))
        self._start(
            ["firefox-esr", "--headless", "--no-remote", "--profile", str(profile),
             "--remote-debugging-port", str(free_port())]
        )  # fmt: skip
        return self._wait_for(r"ws://[\w.:]+") + "/session"

    def _start_chromium(self) -> str:
        port = free_port()
        self._start(["chromedriver", f"--port={port}"])
        self._wait_for("started successfully")
        profile = f"--user-data-dir={self._folder.name}/profile"
        wanted = {"webSocketUrl": True, "goog:chromeOptions": {"args": [*CHROMIUM, profile]}}
        body = json.dumps({"capabilities": {"alwaysMatch": wanted}}).encode()
        request = Request(f"http://127.0.0.1:{port}/session", body)
        with urlopen(request, timeout=START_LIMIT_S) as answer:
            capabilities = json.load(answer)["value"]["capabilities"]
        return str(capabilities["webSocketUrl"]).replace("localhost", "127.0.0.1")

    def _stop(self) -> None:
        if hasattr(self, "_process"):
            terminate(self._process, STOP_LIMIT_S)
        self._folder.cleanup()
