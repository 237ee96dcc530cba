"""Items as the operations of an output leave them."""

from __future__ import annotations

from typing import Any

import pytest

from warrenmq.hub.formats.model import Attachment, Author, Item
from warrenmq.hub.outputs.definition import read_definition
from warrenmq.hub.outputs.transforming import transformed

ITEM = Item(
    id="urn:1",
    title="Rain {feed}",
    summary="Wet.",
    content_html='<h2>Rain</h2><p> </p><p>It <a href="/r?a&amp;b">rains</a>.<p>A lot.',
    content_text="It rains.\n\nA lot.",
    image="i",
    tags=["Sports", "Weather"],
    authors=[Author(name="Ann", url="u")],
    language="en",
    attachments=[Attachment(url="a")],
)


@pytest.mark.parametrize(
    ("steps", "changed"),
    [
        ([{"cut": "headline"}], {"content_html": "", "content_text": "", "summary": ""}),
        ([{"cut": "headline and summary"}], {"content_html": "", "content_text": ""}),
        (
            [{"cut": "headline and first paragraph"}],
            {
                "content_html": '<p>It <a href="/r?a&amp;b">rains</a>.</p>',
                "content_text": "It rains.",
                "summary": "",
            },
        ),
        (
            [{"remove": ["summary"]}, {"cut": "headline and summary"}],
            {
                "content_html": '<p>It <a href="/r?a&amp;b">rains</a>.</p>',
                "content_text": "It rains.",
                "summary": "",
            },
        ),
        ([{"max_characters": 13}], {"content_html": "", "content_text": "It rains. A…"}),
        ([{"max_characters": 16}], {"content_html": "", "content_text": "It rains. A lot."}),
        (
            [{"remove": ["content"]}, {"max_characters": 1}],
            {"content_html": "", "content_text": ""},
        ),
        ([{"title": "{feed}: {title}!"}], {"title": "bbc: Rain {feed}!"}),
        ([{"rename": {"categories": {"sports": "Sport"}}}], {"tags": ["Sport", "Weather"]}),
        ([{"rename": {"categories": {"SPORTS": "Weather"}}}], {"tags": ["Weather"]}),
        (
            [{"rename": {"authors": {"ann": "Ann Lee"}}}],
            {"authors": [Author(name="Ann Lee", url="u")]},
        ),
        ([{"add": {"categories": ["UK", "Sports"]}}], {"tags": ["Sports", "Weather", "UK"]}),
        (
            [{"remove": ["authors", "attachments", "categories", "image", "language"]}],
            {"authors": [], "attachments": [], "tags": [], "image": "", "language": ""},
        ),
    ],
)
def test_steps(steps: list[dict[str, Any]], changed: dict[str, Any]) -> None:
    definition = read_definition({"sources": [{"feed": "a"}], "transform": steps})
    after = transformed(ITEM, definition.transform, "bbc")
    assert after == Item(**{name: getattr(ITEM, name) for name in Item.__struct_fields__} | changed)


@pytest.mark.parametrize(
    ("content_html", "paragraph"),
    [
        ("<a " * 50_000, f"<p>{('&lt;a ' * 50_000).strip()}</p>"),
        ("<!-- <p>Hidden --><p>Seen</p>", "<p>Seen</p>"),
        ("", ""),
        ("<hr><img src='a'>", ""),
        ("only text", "<p>only text</p>"),
        ("<h1>Head</h1>", "<p>Head</p>"),
        ("<div>One<div>two</div></div>", "<p>One</p>"),
        ("<p><script>x</script><style>y</style>a &lt; b</p><p>c", "<p>a &lt; b</p>"),
        ("<p><b>un<i>closed</p><p>c</p>", "<p><b>un<i>closed</i></b></p>"),
        ("<p>a<br>b<img src='c\"'></p>", '<p>a<br>b<img src="c&quot;"></p>'),
        ("<p>a</b></p><p>b", "<p>a</p>"),
    ],
)
def test_first_paragraph(content_html: str, paragraph: str) -> None:
    steps = [{"cut": "headline and first paragraph"}]
    definition = read_definition({"sources": [{"feed": "a"}], "transform": steps})
    item = Item(id="1", content_html=content_html)
    assert transformed(item, definition.transform, "a").content_html == paragraph
