from __future__ import annotations

from warren.hub.topics.entries import MAX_KNOWN, Entry, changed, digest_of, identities, merged


def entry(name: str, link: str = "", digest: str = "d") -> Entry:
    return Entry(name, link, digest)


def test_names_tell_entries_apart_and_then_links_and_then_places() -> None:
    alone = identities([entry("a", "x")])
    assert alone == identities([entry("a", "y")])
    twice = identities([entry("a", "x"), entry("b"), entry("a", "y")])
    assert len(set(twice)) == 3 and alone[0] not in twice
    assert twice[0] == identities([entry("a", "x"), entry("a", "z")])[0]
    assert len(set(identities([entry("a", "x")] * 3))) == 3


def test_what_says_something_else_has_changed() -> None:
    entries = [entry("a"), entry("b"), entry("c")]
    names = identities(entries)
    known = merged({}, names[:2], entries[:2])
    assert changed(names, entries, known) == [False, False, True]
    assert changed(names[:1], [entry("a", digest="other")], known) == [True]


def test_only_so_many_are_known_and_the_oldest_is_forgotten() -> None:
    entries = [entry(str(number)) for number in range(MAX_KNOWN)]
    names = identities(entries)
    known = merged({}, names, entries)
    known = merged(known, names[:1], entries[:1])  # seen again
    known = merged(known, ["new"], [entry("new")])
    assert len(known) == MAX_KNOWN
    assert names[0] in known and "new" in known and names[1] not in known


def test_digests_are_of_parts_and_not_of_their_sum() -> None:
    assert digest_of("ab", "c") != digest_of("a", "bc")
    assert len(digest_of("\ud800")) == 16
