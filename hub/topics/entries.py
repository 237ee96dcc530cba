"""Entries of a feed: what tells them apart, and which of them are new."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

MAX_ENTRIES = 1_000
"""Of one document; those behind them count as not there."""
MAX_KNOWN = 2_000
"""Digests that are kept of a topic: what is older has long left its feed."""
_DIGEST_BYTES = 8

Known = Mapping[str, str]
"""By digests of names the digests of what the entries of that name say, with spaces between them;
the names that were seen latest last."""


@dataclass(frozen=True, slots=True)
class Entry:
    """`name` is its id, guid, URL or content; several may have the same."""

    name: str
    digest: str


def digest_of(*parts: str) -> str:
    """Short, for there are thousands of a topic; of one topic 64 bits are enough."""
    text = "\0".join(parts).encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()


def changed(entries: Sequence[Entry], known: Known) -> list[bool]:
    """For each entry, whether none of its name said the same before.

    Where it stands, and what others of its name say, is of no matter: they move.
    """
    before: dict[str, Collection[str]] = {}
    for entry in entries:
        if entry.name not in before:
            before[entry.name] = known.get(digest_of(entry.name), "").split()
    return [entry.digest not in before[entry.name] for entry in entries]


def merged(known: Known, entries: Iterable[Entry]) -> dict[str, str]:
    """What is known with these entries too; what was seen longest ago goes first."""
    said: dict[str, dict[str, None]] = {}
    for entry in entries:
        said.setdefault(digest_of(entry.name), {})[entry.digest] = None
    fresh = {name: " ".join(digests) for name, digests in said.items()}
    remaining = {name: digests for name, digests in known.items() if name not in fresh}
    return _latest({**remaining, **fresh})


def _latest(known: dict[str, str]) -> dict[str, str]:
    """Without those that go beyond `MAX_KNOWN` digests."""
    count, latest = 0, []
    for name in reversed(known):
        count += known[name].count(" ") + 1
        if count > MAX_KNOWN:
            break
        latest.append(name)
    return {name: known[name] for name in reversed(latest)}
