"""HTML of others in what is written: what acts is left out, and all else stays as it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from tests.hub.formats.rules import CHECKS
from tests.support.hostile_html import HOSTILE
from warrenmq.hub.formats.media_types import Format
from warrenmq.hub.formats.model import Attachment, FeedDocument, FeedHead, Item
from warrenmq.hub.formats.safe_html import harmless
from warrenmq.hub.formats.urls import DocumentUrls
from warrenmq.hub.formats.writing import write

URLS = DocumentUrls("https://hub.example/feeds/x")
ELEMENTS = {
    "a", "b", "details", "div", "img", "math", "mi", "mtext", "p", "pre", "source", "summary",
    "table", "tbody", "td", "tr", "video", "html", "head", "body",
}  # fmt: skip
ATTRIBUTES = {"alt", "class", "href", "open", "src", "srcset", "title", "type", "poster"}


def check(markup: str) -> None:
    """Asserts that a browser's parser finds nothing in it that acts."""
    tree = LexborHTMLParser(markup)
    for node in tree.css("*"):
        assert node.tag in ELEMENTS, node.html
        for name, value in node.attributes.items():
            assert name in ATTRIBUTES, node.html
            if name in ("href", "src", "srcset", "poster"):
                text = "".join((value or "").split()).lower()
                assert not text.startswith(("javascript", "vbscript", "data:")), node.html


@pytest.mark.parametrize("markup", HOSTILE)
def test_nothing_that_acts_is_left(markup: str) -> None:
    check(harmless(markup))
    assert harmless(harmless(markup)) == harmless(markup)


@pytest.mark.parametrize(
    "markup",
    [
        "",
        "a & b &amp; c > d",
        "<p>One<br>two <BR/><b>three</b></p>\n<hr />",
        '<a href=\'https://example.com/?a=1&amp;b=2#c\' title="x > y">a</a><a href="#note">1</a>',
        '<a href="mailto:ann@example.com">Ann</a><a href="/relative:1">b</a><a href="//c/d">c</a>',
        '<img src="https://example.com/a.png" srcset="https://example.com/b.png 2x, c.png" alt="">',
        '<img src="data:image/png;base64,AAAA" width="1" height="1" loading="lazy">',
        '<figure><picture><source srcset="a.webp" type="image/webp"></picture></figure>',
        '<video controls="" poster="https://example.com/a.jpg"><source src="a.mp4"></video>',
        '<table><tr><td colspan="2" align="left">a</td></tr></table><ol start="3"><li id="n">b',
        '<math display="block"><msup><mi>x</mi><mn>2</mn></msup><mspace width="1em" /></math>',
        '<pre class="code" lang="en">a</pre>',
    ],
)
def test_what_is_harmless_is_unchanged(markup: str) -> None:
    assert harmless(markup) == markup


@pytest.mark.parametrize(
    ("markup", "left"),
    [
        ('<P STYLE="color:red" CLASS=a>b</P>', '<p class="a">b</p>'),
        ("<form><p onclick=x>a <input> b</form>", "<p>a  b"),
        ("<iframe src='https://example.com/v?a&amp;b'></iframe>",
         '<a href="https://example.com/v?a&amp;b">https://example.com/v?a&amp;b</a>'),
        ("<svg class='icon'/>a<svg><title>b</title></svg>c", "ac"),
        ("<noscript><img src='/a'></noscript>", "<img src='/a'>"),
        ('<img alt=a"b src=\'c"d\'>', '<img alt="a" src="c&quot;d">'),
        ("1 <2 <b <i>c</i>", "1 &lt;2 &lt;b <i>c</i>"),
    ],
)  # fmt: skip
def test_what_becomes_of_the_rest(markup: str, left: str) -> None:
    assert harmless(markup) == left


PIECES = st.sampled_from(
    ["<", ">", "/", "'", '"', "=", " ", "a", "p", "img", "svg", "math", "script", "style", "href",
     "src", "onerror", "javascript:", "<!--", "-->", "<![CDATA[", "]]>", "</", "&#x0;", "title",
     "\n", "\0", "x", "table"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40).map("".join))
def test_no_markup_has_anything_left_that_acts(markup: str) -> None:
    check(harmless(markup))


@pytest.mark.parametrize(
    "text", ["<", "<a ", "<a '", "<svg ", "<!--", "</svg ", "<a b='c' ", "<x/"]
)
def test_time_is_in_proportion_to_the_length(text: str) -> None:
    """A quadratic step would take minutes of this."""
    harmless(text * 200_000)


def test_documents_have_harmless_html_and_elements() -> None:
    elements = [
        '<h:script xmlns:h="http://www.w3.org/1999/xhtml">ran</h:script>',
        '<g:a xmlns:g="urn:g"><s:svg xmlns:s="http://www.w3.org/2000/svg">ran</s:svg></g:a>',
        '<g:b xmlns:g="urn:g" href=" javascript:ran"/>',
        '<g:c xmlns:g="urn:g">&lt;b onclick="ran"&gt;kept&lt;/b&gt;</g:c>',
        '<id xmlns="http://www.w3.org/2005/Atom">urn:ran</id>',
    ]
    extensions = {
        "_xml": {"elements": elements},
        "_atom": {"elements": elements[-1:]},
        "_rss": {"elements": ["<guid>ran</guid>", "<comments>javascript:ran</comments>"]},
    }
    page = "data:text/html,<script>ran</script>"
    item = Item(
        "urn:1", title="<img src=x onerror='ran'>", content_html="<p onclick='ran'>text</p>",
        image=page, attachments=[Attachment(page)], extensions=extensions,
    )  # fmt: skip
    title = "<script>ran</script>"
    head = FeedHead(title=title, description=title, copyright=title, icon=page)
    formats: tuple[Format, ...] = ("atom", "rss", "json")
    atom, rss, json_feed = (write(one, FeedDocument(head, [item]), urls=URLS) for one in formats)
    for format, body in zip(formats, (atom, rss, json_feed), strict=True):
        CHECKS[format](body)
    [found] = json.loads(json_feed)["items"]
    assert found["content_html"] == "<p>text</p>" and not found.keys() & {"image", "attachments"}
    assert b"&lt;script" not in rss and b"&lt;img" not in rss  # plain text, read as HTML by many
    for body in (atom, rss):
        assert b"<g:c" in body and b"&lt;b&gt;kept&lt;/b&gt;" in body
        assert b"onclick" not in body and b"javascript" not in body and b"data:" not in body
