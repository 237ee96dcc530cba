"""URLs that others have chosen, as links of the web UI."""

from __future__ import annotations

import json

import pytest

from .signed_in import SignedInPage

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize(
    ("given", "shown", "is_link"),
    [
        (["https://a.example/b?c=d"], "https://a.example/b?c=d", True),
        (["HTTP://a.example", "A page"], "A page", True),
        (["http://a.example", ""], "http://a.example", True),
        (["javascript:alert(1)"], "javascript:alert(1)", False),
        (["data:text/html,x", "A page"], "A page", False),
        ([None], "", False),
        (["", "A page"], "A page", False),
    ],
)
def test_only_those_of_the_web_are_links(
    ui: SignedInPage, given: list[str | None], shown: str, is_link: bool
) -> None:
    found = ui.page.run(
        "import('/ui/lib/view.js').then(({outside}) => { const one = document.createElement('p');"
        f"one.append(outside(...{json.dumps(given)})); const link = one.querySelector('a');"
        "return [one.textContent, link?.getAttribute('href') ?? null, link?.rel ?? null]; })"
    )
    way = [given[0], "noopener noreferrer"] if is_link else [None, None]
    assert found == [shown, *way]
