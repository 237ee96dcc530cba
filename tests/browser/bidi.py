"""A blocking client of WebDriver BiDi, the protocol that browsers are driven with.

Both browsers speak it without a package of their own: Firefox itself, Chromium through the
chromedriver of its package (https://www.w3.org/TR/webdriver-bidi/).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from websockets.sync.client import connect

ANSWER_LIMIT_S = 60.0

Event = dict[str, Any]


class CommandError(RuntimeError):
    """The browser refused a command, or the script in it threw."""


class Connection:
    """Sends commands one at a time; passes each event to `on_event` as it is read."""

    def __init__(self, url: str, on_event: Callable[[str, Event], None]) -> None:
        self._open = ExitStack()
        # Without pings: their thread would use the random state that property tests in this process
        # rely on.
        connected = connect(url, max_size=None, proxy=None, ping_interval=None)
        self._socket = self._open.enter_context(connected)
        self._on_event = on_event
        self._last_id = 0

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Returns the result. Raises `CommandError`, and `TimeoutError` without an answer."""
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": parameters}
        self._socket.send(json.dumps(message))
        while (answer := self._read(ANSWER_LIMIT_S)).get("id") != self._last_id:
            pass
        if answer["type"] == "error":
            raise CommandError(f"{method}: {answer['error']}: {answer['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def close(self) -> None:
        self._open.close()

    def _read(self, limit_s: float) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._socket.recv(limit_s))
        if message["type"] == "event":
            self._on_event(message["method"], message["params"])
        return message
