"""Markdown to HTML: anchors, links between files, and nothing that a browser would run."""

from __future__ import annotations

import pytest

from warrenmq.app.manual.markdown import page_link, render


def test_html_is_shown_as_text() -> None:
    html = render("a <b>b</b> <!-- no --> c\n\n<script>x()</script>\n\n<!-- no\nno -->\n").html
    assert "<p>a &lt;b&gt;b&lt;/b&gt;" in html and "&lt;script&gt;x()&lt;/script&gt;" in html
    assert "<script" not in html and "no" not in html


@pytest.mark.parametrize("target", ["javascript:x()", "data:text/html,x", "vbscript:x"])
def test_links_run_nothing(target: str) -> None:
    assert "href" not in render(f"[here]({target})").html


def test_code_is_text() -> None:
    html = render('```sh "><b>\n<b> & "\n```\n').html
    assert html.endswith('<code class="language-sh">&lt;b&gt; &amp; &quot;\n</code></pre>\n')


def test_headings_have_anchors() -> None:
    document = render("# A `code` title\n\n## Who, what?\n\n## Who, what?\n\n## x-y_z: 1 & 2\n")
    assert document.title == "A code title"
    anchors = [one.anchor for one in document.headings]
    assert anchors == ["a-code-title", "who-what", "who-what-1", "x-y_z-1--2"]
    assert '<h2 id="who-what-1">' in document.html


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("hub.md", "hub"),
        ("../hub.md#a-b", "../hub#a-b"),
        ("README.md", "./"),
        ("../README.md#learn", "../#learn"),
        ("tutorial/README.md", "tutorial/"),
        ("#here", "#here"),
        ("grafana/alerts.yml", "grafana/alerts.yml"),
        ("https://example.org/a.md", "https://example.org/a.md"),
    ],
)
def test_links_to_files_lead_to_their_pages(link: str, expected: str) -> None:
    assert page_link(link) == expected
    assert f'href="{expected}"' in render(f"[x]({link})").html


def test_a_cell_without_a_heading_is_none() -> None:
    html = render("| | b |\n|---|---|\n| 1 | 2 |\n").html
    assert "<th></th>" not in html and "<th>b</th>" in html
