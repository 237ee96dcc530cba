"""Remembers the numbers of messages that returned to their queue.

RabbitMQ delivers a message again as if it were another one. Messages that the hub has published,
and those with a message-id, are known by that; the others by their content, as long as the process
runs. Of messages with the same content the first one that returned comes back first.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict, deque
from hashlib import blake2b
from typing import Final

from ....core.message.model import Message

NUMBER_BITS: Final = 63
KEPT: Final = 50_000
"""Contents that are remembered; an entry has about 300 bytes."""

Place = tuple[str, str]
"""Virtual host and queue."""


def new_number() -> int:
    """Returns the number of a message that is known by nothing."""
    return secrets.randbits(NUMBER_BITS)


class ReturnedNumbers:
    def __init__(self) -> None:
        self._numbers: OrderedDict[bytes, deque[int]] = OrderedDict()

    def remember(self, place: Place, message: Message, number: int) -> None:
        """Notes that the message returns to its queue, after those noted before."""
        self._numbers.setdefault(_digest(place, message), deque()).append(number)
        if len(self._numbers) > KEPT:
            self._numbers.popitem(last=False)

    def recall(self, place: Place, message: Message) -> int:
        """Returns the number of a message that is delivered, a new one if it was not noted."""
        if not (message.redelivered and self._numbers):
            return new_number()
        digest = _digest(place, message)
        found = self._numbers.pop(digest, None)
        if found is None:
            return new_number()
        number = found.popleft()
        if found:
            self._numbers[digest] = found
        return number


def _digest(place: Place, message: Message) -> bytes:
    parts = repr((place, message.exchange, message.routing_key, message.properties))
    digest = blake2b(parts.encode(errors="surrogatepass"), digest_size=16)
    digest.update(message.body)
    return digest.digest()
