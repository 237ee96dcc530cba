from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from warrenmq.hub.links.page import read_page

LINK = '<link rel="hub" href="h">'
PIECES = ["<", ">", "!", "--", "[", "]", "/", "link ", "rel=hub ", "'", '"', "head", "title", "a"]


def hubs(text: str) -> list[tuple[str, str]]:
    return read_page(text.encode(), "text/html").hubs


def test_a_head_may_be_implied() -> None:
    assert hubs(LINK) == hubs(f"<!-- c --> <meta>{LINK}") == [("", "h")]


def test_the_end_of_the_head() -> None:
    for end in ("</head>", "<body>", "</html>", "</br>", "<p>", "text", "<input>"):
        assert hubs(f"<head><style>a</style>{LINK}{end}{LINK}") == [("", "h")]


def test_links_in_other_elements_are_text() -> None:
    for name in ("title", "script", "style", "noscript", "template"):
        assert hubs(f"<{name}>{LINK}</{name}>") == []
        assert hubs(f"<{name}></{name}>{LINK}") == [("", "h")]
        assert hubs(f"<{name}/>{LINK}") == []  # not empty: the slash means nothing in HTML


def test_the_first_base_and_the_first_of_an_attribute_count() -> None:
    assert hubs("<base href=b><base href=c><link rel=hub href=x href=y>") == [("b", "x")]


def test_a_page_has_only_so_much_head() -> None:
    assert hubs(" " * 250_000 + LINK) == [("", "h")]
    assert hubs(" " * 300_000 + LINK) == []


def test_faults_of_the_parser() -> None:
    assert hubs(f"{LINK}<![<![<!{LINK}") == [("", "h")]


@given(st.lists(st.sampled_from(PIECES), max_size=60))
def test_any_page_is_parsed_without_an_error(pieces: list[str]) -> None:
    hubs("".join(pieces))


@given(st.binary(max_size=60))
def test_any_bytes_are_parsed_without_an_error(body: bytes) -> None:
    for charset in ("utf-8", "utf-16", "koi8-r", "zlib"):
        read_page(body, f"text/html; charset={charset}")
