"""The documentation at `/docs/` in real browsers: on a phone, in both themes, audited."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from selectolax.lexbor import LexborHTMLParser

from tests.support import node
from tests.support.server import WarrenServer

from .browsers import Browser, Page, missing

pytestmark = pytest.mark.thorough

PHONE, SCREEN = (360, 740), (1280, 800)
WITH_EVERYTHING = ("./hub", "./tutorial/")
CONTRAST = {"runOnly": ["color-contrast"]}
ALL_BUT_CONTRAST = {"rules": {"color-contrast": {"enabled": False}}}
AUDIT = """axe.run(document, {}).then(({{violations}}) =>
  violations.map((one) => [one.id, one.nodes.map((node) => node.html)]))"""


@pytest.fixture(scope="module")
def addresses(warren: WarrenServer) -> list[str]:
    """Every page of the list."""
    index = LexborHTMLParser(httpx.get(f"{warren.http_url}/docs/", verify=False).text)
    return ["", *(str(link.attributes["href"]) for link in index.css("#pages a"))]


def test_no_page_is_wider_than_a_phone(page: Page, hub_url: str, addresses: list[str]) -> None:
    page.resize(*PHONE)
    wide = []
    for address in addresses:
        page.open(f"{hub_url}docs/{address}")
        if page.run("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            wide.append(address)
    assert wide == []


def test_the_list_of_pages_opens_on_a_phone(page: Page, hub_url: str) -> None:
    page.resize(*PHONE)
    page.open(f"{hub_url}docs/hub")
    assert page.run("getComputedStyle(document.querySelector('#pages')).display") == "none"
    page.click("header button")
    page.wait("document.querySelector('#pages a[aria-current]').checkVisibility()")
    page.click("#pages a")
    page.wait("location.pathname === '/docs/first-steps'")


def test_the_theme_is_that_of_the_web_ui(page: Page, hub_url: str) -> None:
    page.open(f"{hub_url}docs/hub")
    for theme in ("light", "dark"):
        page.run(f"localStorage.setItem('warren-theme', '{theme}')")
        page.reload()
        assert page.run("getComputedStyle(document.documentElement).colorScheme") == theme


def test_blocks_of_code_can_be_copied(page: Page, hub_url: str) -> None:
    page.open(f"{hub_url}docs/hub")
    page.run("(navigator.clipboard.writeText = async (text) => { window.copied = text; }, 0)")
    page.click(".block button")
    page.wait("window.copied === document.querySelector('main pre').textContent")
    page.shows("Copied", ".block button")


@pytest.mark.timeout(400)
def test_no_page_has_a_violation(warren: WarrenServer, hub_url: str, addresses: list[str]) -> None:
    """Contrast takes long in large tables, so it is measured where each kind of text is."""
    if reason := missing("chromium") or node.missing():
        pytest.skip(reason)
    axe = Path(node.installed_packages(), "node_modules/axe-core/axe.min.js").read_text()
    with Browser("chromium") as chromium:
        page = chromium.new_page()
        page.resize(*SCREEN)
        found = {}
        for address in addresses:
            page.open(f"{hub_url}docs/{address}")
            page.run(f"(() => {{ {axe}; return true; }})()")
            found[address] = page.run(AUDIT.format(json.dumps(ALL_BUT_CONTRAST)))
            for theme in ("light", "dark") if address in WITH_EVERYTHING else ():
                page.run(f"(document.documentElement.dataset.theme = {json.dumps(theme)})")
                found[f"{address} in {theme}"] = page.run(AUDIT.format(json.dumps(CONTRAST)))
        assert {address: wrong for address, wrong in found.items() if wrong} == {}
        assert len(found) == len(addresses) + 2 * len(WITH_EVERYTHING)
        assert chromium.close_pages() == []
