"""Messages encoded for readers, and joined once for all readers of a form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .forms import Form


class EncodedBatch:
    """Consecutive messages: JSON texts, and the cursor of each (none for a queue)."""

    __slots__ = ("_joined", "cursors", "size_bytes", "texts")

    def __init__(self, texts: Sequence[bytes], cursors: Sequence[str]) -> None:
        self.texts = texts
        self.cursors = cursors
        self.size_bytes = sum(map(len, texts))
        self._joined: dict[Form, bytes] = {}

    def joined(self, form: Form) -> bytes:
        """Returns all messages as a reader of this form gets them."""
        found = self._joined.get(form)
        if found is None:
            found = self._joined[form] = form.messages(self)
        return found

    def behind(self, count: int) -> EncodedBatch:
        """Returns the messages without the first `count`."""
        return EncodedBatch(self.texts[count:], self.cursors[count:]) if count else self
