"""Entries of a feed: what tells them apart, and which of them are new."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

MAX_ENTRIES = 1_000
"""Of one document; those behind them count as not there."""
MAX_KNOWN = 2_000
"""Digests that are kept of a topic: what is older has long left its feed."""
_DIGEST_BYTES = 8

Known = Mapping[str, str]
"""Digests of what entries say, by digests of what they are called; the latest last."""


@dataclass(frozen=True, slots=True)
class Entry:
    """`name` is its id, guid, URL or content; `link` tells apart entries of one name."""

    name: str
    link: str
    digest: str


def digest_of(*parts: str) -> str:
    """Short, for there are thousands of a topic; of one topic 64 bits are enough."""
    text = "\0".join(parts).encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()


def identities(entries: Sequence[Entry]) -> list[str]:
    """What each is kept under: its name, where that repeats its link too, then its place."""
    names = [entry.name for entry in entries]
    names = _apart(names, lambda place: entries[place].link)
    names = _apart(names, str)
    return [digest_of(name) for name in names]


def changed(identities: Sequence[str], entries: Sequence[Entry], known: Known) -> list[bool]:
    """For each entry, whether it is new or says something else than it did."""
    pairs = zip(identities, entries, strict=True)
    return [known.get(identity) != entry.digest for identity, entry in pairs]


def merged(known: Known, identities: Iterable[str], entries: Iterable[Entry]) -> dict[str, str]:
    """What is known with these entries too; what was seen longest ago goes first."""
    fresh = {one: entry.digest for one, entry in zip(identities, entries, strict=True)}
    kept = {one: digest for one, digest in known.items() if one not in fresh}
    kept.update(fresh)
    return dict(list(kept.items())[-MAX_KNOWN:])


def _apart(names: list[str], addition: Callable[[int], str]) -> list[str]:
    counts = Counter(names)
    return [
        name if counts[name] == 1 else f"{name}\n{addition(place)}"
        for place, name in enumerate(names)
    ]
