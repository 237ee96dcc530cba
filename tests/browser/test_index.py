"""The list of demos: each runs beside its source."""

from __future__ import annotations

import pytest

from warrenmq.app.routes.browser_files import DEMOS

from .browsers import PACKAGES, Page

ROOT = DEMOS.parents[1]
NAMES = sorted(file.stem for file in DEMOS.glob("*.html") if file.stem != "index")
FRAME = "document.querySelector('iframe')"
UNNAMED = """
  [...document.querySelectorAll('input, select, textarea, iframe, button')]
    .filter((one) => !(one.labels?.length || one.title || one.ariaLabel || one.textContent.trim()))
    .map((one) => one.outerHTML)
"""


@pytest.mark.thorough
def test_every_demo_runs_beside_its_source(page: Page, hub_url: str) -> None:
    page.open(f"{hub_url}demos/")
    for name in NAMES:
        page.click(f'a[href="#{name}"]')
        page.wait(f"{FRAME}.contentWindow.location.pathname === '/demos/{name}.html'")
        page.shows(f"{name}.html", "#source h2")
        assert page.run("document.querySelector('[aria-current=page]').hash") == f"#{name}"
        page.shows("</html>", "#source pre")
        page.wait(f"{FRAME}.contentDocument.querySelector('h1')")


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["index", *NAMES])
def test_pages_fit_a_phone_and_name_what_they_have(page: Page, hub_url: str, name: str) -> None:
    page.resize(360, 740)
    page.open(f"{hub_url}demos/{name}.html")
    page.wait("document.querySelector('h1')")
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    assert page.run("document.title.length > 3 && document.documentElement.lang === 'en'")
    assert page.run(UNNAMED) == []


def test_the_integration_installs_the_browsers() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert all(f" {package}\n" in script for found in PACKAGES.values() for package in found)
