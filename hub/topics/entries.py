"""Entries of a feed, known by digests: which of them are new or changed."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

MAX_ENTRIES = 1_000
"""Entries read of one document; later ones are ignored."""
MAX_KNOWN = 2_000
"""Digests kept of a topic; entries with older ones have left its feed long ago."""
_DIGEST_BYTES = 8

Known = Mapping[str, str]
"""The digests of contents, separated by spaces, by the digests of their entries' names; the names
seen last come last."""


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """An entry; `name` is its id, guid, URL or content, and need not be unique."""

    name: str
    digest: str


def digest_of(*parts: str) -> str:
    """Returns a digest of 64 bits: enough for one topic, which has thousands of them."""
    text = "\0".join(parts).encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()


def changed(entries: Sequence[FeedEntry], known: Known) -> list[bool]:
    """Returns for each entry whether no entry of its name had the same content before.

    Its position and the other entries of its name are ignored, because entries move.
    """
    before: dict[str, Collection[str]] = {}
    for entry in entries:
        if entry.name not in before:
            before[entry.name] = known.get(digest_of(entry.name), "").split()
    return [entry.digest not in before[entry.name] for entry in entries]


def merged(known: Known, entries: Iterable[FeedEntry]) -> dict[str, str]:
    """Returns what is known with these entries; the ones not seen for longest are dropped."""
    contents: dict[str, dict[str, None]] = {}
    for entry in entries:
        contents.setdefault(digest_of(entry.name), {})[entry.digest] = None
    fresh = {name: " ".join(digests) for name, digests in contents.items()}
    remaining = {name: digests for name, digests in known.items() if name not in fresh}
    return _latest({**remaining, **fresh})


def _latest(known: dict[str, str]) -> dict[str, str]:
    """Returns the last names, with at most `MAX_KNOWN` digests."""
    count, latest = 0, []
    for name in reversed(known):
        count += known[name].count(" ") + 1
        if count > MAX_KNOWN:
            break
        latest.append(name)
    return {name: known[name] for name in reversed(latest)}
