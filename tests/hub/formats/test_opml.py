"""Lists of feeds in OPML come out as they went in."""

from __future__ import annotations

from xml.etree.ElementTree import canonicalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.hub.formats.opml import Opml, Outline, read_opml, write_opml
from warrenmq.hub.formats.read_feed import FeedRefused
from warrenmq.hub.formats.reading import read_outlines
from warrenmq.hub.workers.pool import Workers

EXPORT = """<?xml version="1.0" encoding="UTF-8"?>
<!-- of a reader -->
<opml version="1.0" xmlns:r="https://reader.example/opml" xmlns:s="urn:s" s:made="by hand">
<head><title>Mine &amp; yours</title><dateCreated>Mon, 23 Nov 2026 10:00:00 GMT</dateCreated>
<text/><ownerId kind="url">x</ownerId><r:state><r:open n="1">a</r:open>b</r:state></head>
<body>
<outline text="News" title="News">
  <outline text="Ünïcode" type="rss" xmlUrl="https://a.example/?a=1&amp;b=2" htmlUrl="https://a"
    r:priority="high" xml:lang="de" category="/x,/y"/>
  <outline text="Deep"><outline text="b" xmlurl="https://b.example/"/></outline>
</outline>
<outline title="c" xmlUrl="https://c.example/" text="a&#9;b&#10;c"/><outline text="empty"></outline>
<outline s:settings="">{"a": "&lt;b>"}<outline name="x"/></outline>
</body></opml>""".encode()


def test_an_export_of_a_feed_reader_is_written_unchanged() -> None:
    written = write_opml(read_opml(EXPORT))
    assert b' r:priority="high"' in written
    assert canonicalize(written, strip_text=True) == canonicalize(EXPORT, strip_text=True)


def test_prefixes_that_two_lists_have_are_kept_apart() -> None:
    mixed = Opml([Outline({"{urn:a}x": "1"}), Outline({"{urn:b}x": "2", "{urn:c}x": "3"})])
    mixed.prefixes = {"urn:a": "p", "urn:b": "p", "urn:c": "ns1"}
    assert read_opml(write_opml(mixed)).outlines == mixed.outlines


async def test_ten_thousand_outlines_are_read_in_a_worker(workers: Workers) -> None:
    outlines = [
        Outline({"text": str(n), "xmlUrl": f"https://e.example/{n}"}) for n in range(10_000)
    ]
    read = await read_outlines(workers, write_opml(Opml(outlines)), origin="a user")
    assert read.outlines == outlines


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<opml><body>", "not well-formed"),
        (b"<rss/>", "not an OPML document"),
        (b"<!DOCTYPE opml [<!ENTITY a 'b'>]><opml><body/></opml>", "declarations"),
        (b"<opml><body>" + b"<outline/>" * 20_001 + b"</body></opml>", "20001 outlines, 20000"),
    ],
)
def test_documents_that_are_no_opml_are_refused(body: bytes, reason: str) -> None:
    with pytest.raises(FeedRefused, match=reason):
        read_opml(body)


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=9)
OUTLINES = st.recursive(
    st.builds(lambda text: Outline({"text": text}), TEXTS),
    lambda inner: st.builds(
        lambda text, children: Outline({"text": text}, children), TEXTS, st.lists(inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.lists(OUTLINES, max_size=3))
def test_any_outlines_read_back(outlines: list[Outline]) -> None:
    assert read_opml(write_opml(Opml(outlines))).outlines == outlines
