"""The pages of `/docs/` on a real server: each file of `docs`, with links that lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent
from urllib.parse import urldefrag, urljoin

import httpx
import pytest
from selectolax.lexbor import LexborHTMLParser

from tests.support.server import WarrenServer

DOCS = Path(__file__).parents[1] / "docs"
FILES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
FENCE = re.compile(r"^( *)```[^\n`]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def page_of(file: str) -> str:
    """The path of a file's page below `/docs/`."""
    return re.sub(r"(^|/)README$", r"\1", file.removesuffix(".md"))


@pytest.fixture(scope="module")
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{warren.http_url}/docs/", verify=False) as client:
        yield client


@cache
def fetch(http: httpx.Client, url: str) -> tuple[httpx.Response, LexborHTMLParser]:
    response = http.get(url)
    return response, LexborHTMLParser(response.text)


@pytest.mark.parametrize("file", FILES)
def test_a_page_shows_its_file(http: httpx.Client, warren: WarrenServer, file: str) -> None:
    response, page = fetch(http, page_of(file))
    text = (DOCS / file).read_text()
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["content-security-policy"].startswith("default-src 'self'; ")
    title = text.removeprefix("# ").split("\n")[0].replace("`", "")
    assert [one.text() for one in page.css("main h1")] == [title]
    assert page.css("title")[0].text() == f"{title} · Warren"
    blocks = [dedent(block) for _, block in FENCE.findall(text)]
    here = [block.replace("http://localhost:15672", warren.http_url) for block in blocks]
    assert [one.text() for one in page.css("main pre > code")] == here


@pytest.mark.parametrize("file", FILES)
def test_its_links_lead_somewhere(http: httpx.Client, file: str) -> None:
    response, page = fetch(http, page_of(file))
    found = [one.attributes["href"] for one in page.css("[href]")]
    found += [one.attributes["src"] for one in page.css("[src]")]
    assert len(found) > len(FILES)
    for link in found:
        url, anchor = urldefrag(urljoin(str(response.url), link or ""))
        if url.startswith(str(http.base_url).removesuffix("docs/")):
            answer, there = fetch(http, url)
            assert answer.status_code == 200, link
            assert not anchor or there.css(f'[id="{anchor}"]'), link


def test_every_page_is_in_the_list_once(http: httpx.Client) -> None:
    _, index = fetch(http, "")
    listed = [str(one.attributes["href"]).removeprefix("./") for one in index.css("#pages a")]
    assert sorted(listed) == sorted({*map(page_of, FILES)} - {""})


def test_pages_are_turned_in_the_order_of_the_list(http: httpx.Client) -> None:
    index, page = fetch(http, "")
    listed = [urljoin(str(index.url), one.attributes["href"]) for one in page.css("#pages a")]
    assert len(listed) == len(FILES) - 1
    turned = [str(index.url)]
    while links := fetch(http, turned[-1])[1].css("footer a[rel=next]"):
        turned.append(urljoin(turned[-1], links[0].attributes["href"]))
    assert turned[1:] == listed
    back = fetch(http, turned[2])[1].css("footer a[rel=prev]")[0].attributes["href"]
    assert urljoin(turned[2], back) == listed[0]


def test_the_page_marks_itself_in_the_list(http: httpx.Client) -> None:
    (current,) = fetch(http, "hub")[1].css("#pages [aria-current=page]")
    assert urljoin("/docs/hub", str(current.attributes["href"])) == "/docs/hub"


def test_a_page_that_is_unchanged_is_not_sent_again(http: httpx.Client) -> None:
    etag = http.get("hub").headers["etag"]
    assert http.get("hub", headers={"If-None-Match": etag}).status_code == 304
    assert http.get("websub", headers={"If-None-Match": etag}).status_code == 200


def test_code_has_the_address_that_the_browser_uses(http: httpx.Client) -> None:
    page = LexborHTMLParser(http.get("hub", headers={"Host": "hub.example:8080"}).text)
    assert "http://hub.example:8080/endpoint/" in page.css("main pre")[0].text()


def test_files_as_they_are(http: httpx.Client) -> None:
    markdown = http.get("hub.md")
    assert markdown.headers["content-type"] == "text/markdown; charset=utf-8"
    assert markdown.text == (DOCS / "hub.md").read_text()
    assert http.get("grafana/alerts.yml").headers["content-type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize("path", ["none", "hub/", "grafana/", "grafana/none", "%2e%2e/README"])
def test_nothing_else(http: httpx.Client, path: str) -> None:
    assert http.get(path).status_code == 404


def test_pages_are_read_only(http: httpx.Client) -> None:
    assert http.post("hub").status_code == 405
    assert http.head("hub").status_code == 200
