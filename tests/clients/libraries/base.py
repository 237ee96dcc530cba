"""The synchronous interface through which each Python library runs the shared scenarios.

Bodies are bytes, properties a table by their names in the protocol, `headers` among them.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..support import WAIT_S

PROPERTIES = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id",
    "reply_to", "expiration", "message_id", "timestamp", "message_type", "user_id", "app_id",
)  # fmt: skip
STEP_S = 0.02


class Refused(Exception):
    """The broker closed the channel."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text


class Received(NamedTuple):
    """A delivered or fetched message."""

    body: bytes
    tag: int
    redelivered: bool
    properties: Mapping[str, Any]


class LibraryChannel(ABC):
    """A channel; `returned` holds reply codes, `cancelled` tags of consumers the broker ended."""

    def __init__(self) -> None:
        self.returned: list[int] = []
        self.cancelled: list[str] = []

    @abstractmethod
    def declare(self, name: str = "", *, durable: bool = False, **arguments: Any) -> str:
        """Declares a queue, an exclusive one unless it is durable. Raises `Refused`."""

    @abstractmethod
    def count(self, queue: str) -> int: ...
    @abstractmethod
    def delete(self, queue: str) -> None: ...
    @abstractmethod
    def confirm(self) -> None: ...
    @abstractmethod
    def publish(
        self, body: bytes, queue: str, *, exchange: str = "", mandatory: bool = False, **fields: Any
    ) -> bool:
        """Returns False if the broker did not accept it, where publishes are confirmed."""

    @abstractmethod
    def get(self, queue: str) -> Received | None:
        """Fetches a message that needs no acknowledgement."""

    @abstractmethod
    def prefetch(self, count: int) -> None: ...
    @abstractmethod
    def consume(
        self, queue: str, *, no_ack: bool = True, tag: str = "", **arguments: Any
    ) -> list[Received]:
        """Returns a list that grows as messages are delivered; see `wait`."""

    @abstractmethod
    def cancel(self, tag: str) -> None: ...
    @abstractmethod
    def ack(self, tag: int, *, multiple: bool = False) -> None: ...
    @abstractmethod
    def reject(self, tag: int, *, requeue: bool) -> None: ...
    @abstractmethod
    def tx(self, step: str) -> None:
        """Does `select`, `commit` or `rollback`."""

    @abstractmethod
    def work(self) -> None:
        """Lets the library handle what has arrived."""

    def wait(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not done():
            assert time.monotonic() < deadline, f"did not happen within {WAIT_S} s"
            self.work()

    def bodies(self, received: list[Received], count: int) -> list[bytes]:
        self.wait(lambda: len(received) >= count)
        return [one.body for one in received]


class Library(ABC):
    """A connection to a broker."""

    writes_floats = True

    @abstractmethod
    def channel(self) -> LibraryChannel: ...
    @abstractmethod
    def close(self) -> None: ...


def arguments_table(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
