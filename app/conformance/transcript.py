"""The transcript of requests and responses (`--verbose`, `--json`)."""

from __future__ import annotations

from collections.abc import Iterable

MAX_SHOWN = 300
"""Characters of a body."""


class Transcript:
    """Requests and responses; `->` marks requests to the hub, `<-` requests of the hub."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def sent(self, url: str, fields: Iterable[tuple[str, str]], answer: str) -> None:
        self.lines.append(f"-> POST {url} {form(fields)}: {answer}")

    def received(self, what: str, answer: str) -> None:
        self.lines.append(f"<- {what}: {answer}")

    def note(self, text: str) -> None:
        self.lines.append(f"   {text}")


def form(fields: Iterable[tuple[str, str]]) -> str:
    """Formats parameters; of secrets only the length is shown."""
    return " ".join(f"{name}={_shown(name, value)}" for name, value in fields)


def body(content: bytes) -> str:
    text = content[:MAX_SHOWN].decode(errors="backslashreplace")
    more = f"... ({len(content)} bytes)" if len(content) > MAX_SHOWN else ""
    return repr(text) + more


def _shown(name: str, value: str) -> str:
    if name == "hub.secret":
        return f"({len(value.encode())} bytes)"
    return value
