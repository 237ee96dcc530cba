"""Numbers with what they count, in messages to people."""

from __future__ import annotations


def counted(number: int, singular: str, plural: str = "") -> str:
    """Returns `1 message`, or `1,204 messages`; without `plural` that is `singular` with an s."""
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"
