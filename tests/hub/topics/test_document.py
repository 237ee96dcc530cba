"""What is compared of a topic (reliability.md 57, 61-63)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hub.topics.feeds import ATOM_TYPE, JSON_TYPE, RSS_TYPE, atom, rss
from warrenmq.hub.topics.document_reader import read_document


def test_new_and_changed_entries() -> None:
    before = read_document(ATOM_TYPE, atom(("1", "a"), ("2", "b"), ("3", "c")), {})
    body = atom(("4", "new"), ("1", "a"), ("2", "changed"), updated="x")
    after = read_document(ATOM_TYPE, body, before.known)
    news = after.news
    assert news is not None and b">4<" in news and b"changed" in news and b">1<" not in news
    assert before.digest != after.digest and before.news == before.body
    assert read_document(ATOM_TYPE, body, after.known).news is None
    again = read_document(ATOM_TYPE, atom(("3", "c"), ("1", "a")), after.known)  # 3 was left out
    assert again.news is None


@pytest.mark.parametrize(
    ("content_type", "body", "is_feed"),
    [
        (RSS_TYPE, rss("<guid>1</guid>"), True),
        ("Text/XML; charset=us-ascii", rss("<guid>\xe9</guid>"), True),
        ("text/html", rss("<guid>1</guid>"), True),
        ("", rss("<guid>1</guid>"), True),
        (RSS_TYPE, rss(), True),
        (JSON_TYPE, b'{"version": "https://jsonfeed.org/version/1", "items": []}', True),
        ("application/json", b'{"a": 1}', False),
        ("application/json", b'{"caf\xe9": 1}', False),
        ("text/html", b"<!DOCTYPE html><title>a</title>", False),
        ("text/plain", b"text", False),
        ("application/xml", b"<!DOCTYPE a><a/>", False),
        ("image/svg+xml", b"<svg><feed/></svg>", False),
    ],
)
def test_feeds_and_other_documents(content_type: str, body: bytes, is_feed: bool) -> None:
    document = read_document(content_type, body, {"a": "b"})
    assert ("a" in document.known) is is_feed
    if not is_feed:
        assert document.news == body and document.known == {}


def test_faults_of_a_feed_are_noticed() -> None:
    document = read_document(RSS_TYPE, rss("<guid>1</guid>", "<wrong>"), {})
    assert "not well-formed" in document.notice and len(document.known) == 2
    document = read_document(RSS_TYPE, rss(*(f"<guid>{n}</guid>" for n in range(10_000))), {})
    assert "only the first 1000" in document.notice and len(document.known) == 1_000


GONE = '<at:deleted-entry ref="1" when="2026-11-22T00:00:00Z"{}'
TOMBSTONES = {
    "empty": GONE.format("/>"),
    "with a comment": GONE.format(
        "><at:comment>Removed: a &lt; b/&gt;</at:comment></at:deleted-entry>"
    ),
    "without content": GONE.format("></at:deleted-entry>"),
    "with text": GONE.format("> </at:deleted-entry>"),
}


@pytest.mark.parametrize(("encoding", "before"), [("utf-8", ""), ("utf-8", "\n"), ("utf-16", "")])
@pytest.mark.parametrize("kind", TOMBSTONES)
def test_a_tombstone_is_news(kind: str, encoding: str, before: str) -> None:
    """RFC 6721: an entry was deleted; the one that comes back is new again. Also in a feed that is
    not well-formed."""
    namespace = ' xmlns:at="http://purl.org/atompub/tombstones/1.0">'
    first, second = (f"<entry><id>{one}</id><title>a</title></entry>" for one in "12")

    def feed(*inside: str) -> bytes:
        head = f'{before}<feed xmlns="http://www.w3.org/2005/Atom"{namespace}'
        return f"{head}{''.join(inside)}</feed>".encode(encoding)

    gone = TOMBSTONES[kind]
    known = read_document(ATOM_TYPE, feed(first, second), {}).known
    deleted = read_document(ATOM_TYPE, feed(second, gone), known)
    assert deleted.news == feed(gone)
    assert read_document(ATOM_TYPE, feed(gone, second), deleted.known).news is None
    assert read_document(ATOM_TYPE, feed(first, second), deleted.known).news == feed(first)


def test_the_type_is_part_of_the_content() -> None:
    plain, page = (read_document(one, b"a", {}) for one in ("text/plain", "text/html"))
    assert plain.digest != page.digest


PIECES = [
    b"<rss>", b"<channel>", b"<item>", b"</item>", b"<guid>", b"1", b"</guid>", b"<title/>",
    b"</channel>", b"</rss>", b"\xff", b" ", b"<item/>", b"<!--", b"-->", b"<![CDATA[", b"]]>",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=40), st.binary(max_size=20))
def test_any_bytes_are_read(pieces: list[bytes], rest: bytes) -> None:
    for body in (b"<rss><channel>" + b"".join(pieces) + rest, rest, b"{" + rest):
        for content_type in (RSS_TYPE, "text/xml", JSON_TYPE, ""):
            document = read_document(content_type, body, {})
            assert document.news is None or len(document.news) <= len(body)
            assert read_document(content_type, body, document.known).news in (None, body)


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("xyz")), unique=True),
       st.data())  # fmt: skip
def test_only_known_entries_are_cut(entries: list[tuple[str, str]], data: st.DataObject) -> None:
    known = data.draw(st.sets(st.sampled_from(entries))) if entries else set()
    items = [f"<title>{title}</title><link>{name}</link><guid>{name}{title}</guid>"
             for name, title in entries]  # fmt: skip
    old = [item for item, entry in zip(items, entries, strict=True) if entry in known]
    new = [item for item, entry in zip(items, entries, strict=True) if entry not in known]
    before = read_document(RSS_TYPE, rss(*old), {}).known
    assert read_document(RSS_TYPE, rss(*items), before).news == (rss(*new) if new else None)
