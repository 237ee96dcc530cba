"""What holds for every page of the web UI: audits, hostile names, size, and what it is made of."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.support.server import WarrenServer
from warrenmq.app.routes.browser_files import UI

from .axe import THEMES, audit
from .signed_in import SignedInPage

MAX_BYTES = 345_000
HOSTILE = '<img src=x onerror="window.harmed=1">\'&amp;'
TABS = {
    "queues/%2F": ("messages", "consumers", "bindings", "publish"),
    "exchanges/%2F": ("bindings", "publish"),
}
ROUTE = re.compile(r'^\t\["(/[^"]*)", "(\w+)"', re.MULTILINE)
ROUTES = ROUTE.findall((UI / "routes.js").read_text())
ADDRESSES = sorted(route for route, _ in ROUTES if ":" not in route)


TIMES_AT_THEIR_LONGEST = """document.querySelectorAll('main time').forEach((one) => {
  const text = one.textContent.replace(/^in .*/, 'in 58 min 59 s');
  one.textContent = text.replace(/.* ago$/, '58 min 59 s ago');
})"""
CELLS_OUTSIDE = """[...document.querySelectorAll('main tbody tr > *')]
  .filter((one) => one.getBoundingClientRect().right > innerWidth).map((one) => one.innerText)"""


@pytest.fixture(scope="module")
def hostile(warren: WarrenServer) -> list[str]:
    """Addresses of objects whose names and texts try to be markup."""
    name = quote(HOSTILE, safe="")
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    message = {
        "properties": {"headers": {"h": HOSTILE}, "content_type": "text/html"},
        "routing_key": HOSTILE, "payload": HOSTILE, "payload_encoding": "string",
    }  # fmt: skip
    subscription = {
        "vhost": "/", "resource_type": "exchange", "resource_name": HOSTILE, "topic": HOSTILE,
        "callback": "http://127.0.0.1:8000/hook", "status": "inactive",
        "contact": {"app_name": HOSTILE},
    }  # fmt: skip
    changes: list[tuple[str, str, dict[str, Any]]] = [
        ("PUT", f"/vhosts/{name}", {"description": HOSTILE, "tags": HOSTILE}),
        ("PUT", f"/permissions/{name}/guest", everything),
        ("PUT", f"/users/{name}", {"password": "x" * 20, "tags": "management"}),
        ("PUT", f"/permissions/%2F/{name}", everything),
        ("PUT", f"/queues/%2F/{name}", {"arguments": {"x-dead-letter-exchange": HOSTILE}}),
        ("PUT", f"/exchanges/%2F/{name}", {"type": "topic"}),
        ("POST", f"/bindings/%2F/e/{name}/q/{name}", {"routing_key": HOSTILE}),
        ("PUT", f"/policies/%2F/{name}", {"pattern": "^$", "definition": {"max-length": 9}}),
        ("POST", f"/exchanges/%2F/{name}/publish", message),
        ("POST", "/hub/subscriptions", subscription),
        ("POST", "/hub/tokens", {"name": HOSTILE, "scopes": [{"read": f"x/{HOSTILE}"}]}),
    ]
    with httpx.Client(base_url=f"{warren.http_url}/api", auth=("guest", "guest")) as client:
        for method, path, body in changes:
            client.request(method, path, json=body).raise_for_status()
    places = ("queues/%2F", "exchanges/%2F", "users", "vhosts")
    return [f"/{place}/{name}" for place in places] + [
        f"/{place}/{name}?tab={tab}" for place, tabs in TABS.items() for tab in tabs
    ]


def test_every_page_of_the_table_exists() -> None:
    assert len(ROUTES) > 25
    assert not [module for _, module in ROUTES if not (UI / "pages" / f"{module}.js").exists()]


def test_the_whole_interface_is_small() -> None:
    files = [file for file in UI.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= MAX_BYTES


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("address", ADDRESSES)
def test_no_list_has_a_violation(
    tab: SignedInPage, axe: str, hostile: list[str], address: str, theme: str
) -> None:
    audit(tab, axe, address, theme)


@pytest.mark.parametrize("theme", THEMES)
def test_pages_of_hostile_objects_have_none(
    tab: SignedInPage, axe: str, hostile: list[str], theme: str
) -> None:
    for address in hostile:
        audit(tab, axe, address, theme)
        tab.shows("<img src=x onerror=", "main h1")


@pytest.mark.parametrize("theme", THEMES)
def test_a_subscription_with_hostile_texts_has_none(
    tab: SignedInPage, axe: str, hostile: list[str], warren: WarrenServer, theme: str
) -> None:
    url = f"{warren.http_url}/api/hub/subscriptions"
    listed = httpx.get(url, auth=("guest", "guest")).json()["subscriptions"]
    (found,) = (one for one in listed if one["topic"] == HOSTILE)
    audit(tab, axe, f"/subscriptions/{found['id']}", theme)
    tab.shows(HOSTILE, "main")


@pytest.mark.thorough
@pytest.mark.parametrize("width", [769, 961, 1025, 1200])
def test_no_table_is_cut(tab: SignedInPage, hostile: list[str], width: int) -> None:
    cut = "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > "
    cut += "one.clientWidth).map((one) => one.innerText)"
    tab.page.resize(width, 800)
    for address in [*ADDRESSES, *hostile]:
        tab.go(address)
        tab.page.wait("!document.querySelector('main').innerText.includes('Loading')")
        tab.page.run(TIMES_AT_THEIR_LONGEST)
        assert not tab.page.run(cut), address
    tab.page.resize(1360, 900)


@pytest.mark.thorough
def test_pages_fit_a_phone(tab: SignedInPage, hostile: list[str]) -> None:
    tab.page.resize(360, 740)
    wide = "[...document.querySelectorAll('main *')].filter((one) => one.getBoundingClientRect()"
    wide += ".right > innerWidth && !one.closest('.scroll')).map((one) => one.outerHTML)"
    for address in [*ADDRESSES, *hostile]:
        tab.go(address)
        tab.page.wait("!document.querySelector('main').innerText.includes('Loading')")
        fits = tab.page.run("document.documentElement.scrollWidth <= innerWidth")
        assert fits, (address, tab.page.run(wide))
        assert not tab.page.run(CELLS_OUTSIDE), address
    tab.page.resize(1360, 900)
