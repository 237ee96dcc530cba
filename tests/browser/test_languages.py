"""Pages of the documentation with programs in several languages show the reader's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .browsers import Page

pytestmark = pytest.mark.thorough

SHOWN = (
    "[...document.querySelectorAll('main h2')].filter((one) => one.checkVisibility())"
    ".map((one) => one.textContent)"
)
HEADINGS = ["Python: pika", "Python: aio-pika", "JavaScript", "Java", "Go", "curl", "Next"]


@pytest.fixture
def reader(page: Page, hub_url: str) -> Iterator[Page]:
    """A browser in which no language was chosen before, nor is afterwards."""
    page.open(f"{hub_url}docs/tutorial/1-work-queue")
    yield page
    page.run("(localStorage.removeItem('warren-language'), 0)")


def choose(page: Page, name: str) -> None:
    page.run(
        "[...document.querySelectorAll('.languages button')]"
        f".find((one) => one.textContent === '{name}').click()"
    )


def test_one_language_is_shown_on_all_pages(reader: Page, hub_url: str) -> None:
    assert reader.run(SHOWN) == HEADINGS
    choose(reader, "Go")
    assert reader.run(SHOWN) == ["Go", "Next"]
    assert (
        reader.run("document.querySelector('.languages [aria-pressed=true]').textContent") == "Go"
    )
    assert not reader.run("document.querySelector('pre code.language-java').checkVisibility()")
    reader.open(f"{hub_url}docs/tutorial/2-publish-subscribe")
    assert reader.run(SHOWN) == ["Go", "Next"]
    choose(reader, "All")
    assert reader.run(SHOWN) == HEADINGS


def test_a_library_of_one_page_is_a_language_of_another(reader: Page, hub_url: str) -> None:
    choose(reader, "Python: pika")
    reader.open(f"{hub_url}docs/guides/webhooks")
    assert reader.run(SHOWN) == ["Five minutes", "Python", "What a receiver should do"]
    choose(reader, "Rust")
    reader.open(f"{hub_url}docs/tutorial/1-work-queue")
    assert reader.run(SHOWN) == HEADINGS


def test_a_link_shows_its_section(reader: Page, hub_url: str) -> None:
    choose(reader, "Go")
    reader.run("(location.hash = '#java', 0)")
    reader.wait(f'JSON.stringify({SHOWN}) === \'["Java","Next"]\'')


def test_other_pages_have_no_choice(reader: Page, hub_url: str) -> None:
    reader.open(f"{hub_url}docs/concepts")
    assert reader.run("document.querySelector('.languages')") is None
