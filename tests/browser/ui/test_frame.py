"""The frame of the web UI: signing in and out, what a user's tags show, addresses, shortcuts."""

from __future__ import annotations

import os
import signal

import httpx
import pytest

from tests.browser.browsers import Browser, Page
from tests.support.server import WarrenServer
from warrenmq.core.resources.amount import in_words

from .signed_in import SignedInPage

pytestmark = pytest.mark.thorough

LINKS = "[...document.querySelectorAll('.side nav a')].map((one) => one.textContent)"
AGE_S = "Number(document.querySelector('#live').innerText.match(/\\d+/))"
USER, PASSWORD = "keeper", "burrow-and-meadow"


def _add_user(server: WarrenServer, tags: str) -> None:
    permissions = {"configure": ".*", "write": ".*", "read": ".*"}
    with httpx.Client(base_url=f"{server.http_url}/api", auth=("guest", "guest")) as client:
        body = {"password": PASSWORD, "tags": tags}
        client.put(f"/users/{USER}", json=body).raise_for_status()
        client.put(f"/permissions/%2F/{USER}", json=permissions).raise_for_status()


def test_a_wrong_password_is_told_and_a_session_outlives_a_reload(ui: SignedInPage) -> None:
    ui.press("Sign out")
    page = ui.page
    page.wait("document.querySelector('.sign-in input[name=name]')")
    page.type("input[name=name]", "guest")
    page.type("input[name=password]", "wrong", enter=True)
    page.wait("document.querySelector('.problem').textContent === 'wrong user or password'")
    ui.sign_in()
    ui.go("/queues?name=orders&sort=name")
    page.reload()
    page.wait("document.querySelector('main.page h1')?.textContent === 'Queues'")
    assert page.run("document.querySelector('[data-search]').value") == "orders"
    page.wait("document.querySelector('th[aria-sort=ascending]')?.textContent === 'Name'")
    page.run("(navigator.clipboard.writeText = async (text) => { window.copied = text; }, 0)")
    ui.press("Copy link")
    page.wait("window.copied === location.href")


def test_a_new_server_gets_its_first_administrator(chromium: Browser) -> None:
    with WarrenServer(dev=False) as server:
        link = next(word for word in server.output().split() if "#/setup/" in word)
        page = chromium.new_page()
        page.open(link.partition("#")[0])
        page.shows("A new server?")
        page.run(f"(location.href = {link!r})")
        page.wait("document.querySelector('[name=again]')")
        assert page.run("document.activeElement.name") == "name"
        page.type("input[name=name]", USER)
        page.type("input[name=password]", PASSWORD)
        page.type("input[name=again]", "other", enter=True)
        page.shows("The passwords differ.")
        page.run("(document.querySelector('input[name=again]').value = '')")
        page.type("input[name=again]", PASSWORD, enter=True)
        page.wait("document.querySelector('main.page h1')?.textContent === 'Overview'")
        assert "setup" not in page.run("location.href")
        assert not chromium.close_pages()


@pytest.mark.parametrize(("route", "title"), [("/queues?name=o", "Queues"), ("/", "Overview")])
def test_a_session_that_is_over_asks_again_and_goes_on_there(
    ui: SignedInPage, route: str, title: str
) -> None:
    ui.go(route)
    ui.page.run(
        "fetch('/api/warren/session').then((one) => one.json()).then(({csrf_token}) => "
        "fetch('/api/warren/logout', {method: 'POST', headers: {'X-CSRF-Token': csrf_token}}))"
        ".then(() => null)"
    )
    ui.page.wait("document.querySelector('.sign-in input[name=name]')")
    ui.page.errors.clear()  # the browser reports each 401
    ui.sign_in()
    ui.page.wait(f"document.querySelector('main.page h1').textContent === '{title}'")


def test_what_is_below_the_sign_in_form_is_in_its_middle(ui: SignedInPage) -> None:
    ui.press("Sign out")
    ui.page.wait("document.querySelector('.sign-in details')")
    middles = ui.page.run(
        "[...document.querySelectorAll('.sign-in > *')].map((one) => one.getBoundingClientRect())"
        ".map(({left, right}) => Math.round((left + right) / 2))"
    )
    assert max(middles) - min(middles) <= 1, middles  # pixels are whole
    summary = "document.querySelector('.sign-in summary').getBoundingClientRect().width"
    assert ui.page.run(f"{summary} < 200"), "closed, it is as wide as its words"
    card = "document.querySelector('.sign-in .card').getBoundingClientRect().width"
    assert ui.page.run(f"{card} === 24 * 16")


def test_sizes_are_those_of_the_servers_own_texts(ui: SignedInPage) -> None:
    sizes = [300 * 2**10, 15 * 2**30, 3 * 2**40]
    module = "import('/ui/lib/format.js')"
    shown = ui.page.run(f"{module}.then(({{bytes}}) => {sizes}.map(bytes))")
    assert shown == ["300 KiB", *map(in_words, sizes[1:])]
    rates = ui.page.run(f"{module}.then(({{rate}}) => [0, 0.25, 0.5, 1, 2.5, 20].map(rate))")
    assert rates == ["0/s", "0.25/s", "0.5/s", "1.0/s", "2.5/s", "20/s"]


def test_the_bar_is_live_again_after_signing_in(ui: SignedInPage) -> None:
    ui.press("Sign out")
    ui.page.wait("document.querySelector('.sign-in')")
    ui.hide(True)
    ui.hide(False)
    ui.sign_in()
    ui.shows("Live", "#live")


def test_numbers_turn_pale_while_the_server_does_not_answer(
    ui: SignedInPage, warren: WarrenServer
) -> None:
    ui.go("/queues")
    ui.shows("Live", "#live")
    os.kill(warren.pid, signal.SIGSTOP)
    try:
        ui.page.wait("document.querySelector('main.stale')")
        ui.shows("Last update", "#live")
        ui.page.wait(f"{AGE_S} > {ui.page.run(AGE_S)}")  # it is counted on
    finally:
        os.kill(warren.pid, signal.SIGCONT)
    ui.page.wait("!document.querySelector('main.stale')")
    ui.shows("Live", "#live")


def test_tags_decide_what_is_shown(ui: SignedInPage, warren: WarrenServer) -> None:
    assert {"Users", "Log", "Audit log"} < set(ui.page.run(LINKS))
    _add_user(warren, "management")
    ui.press("Sign out")
    ui.sign_in(USER, PASSWORD)
    shown = set(ui.page.run(LINKS))
    assert {"Queues", "Subscriptions", "Live console"} < shown
    assert shown.isdisjoint({"Users", "Policies and limits", "Definitions", "Log", "Audit log"})
    ui.press("Sign out")
    _add_user(warren, "")
    ui.sign_in(USER, PASSWORD, shows="document.title.startsWith('No access')")
    ui.shows(f"{USER} can't use these pages")
    ui.press("Sign out")
    ui.sign_in()


def test_the_next_user_of_a_tab_finds_nothing_of_the_last(
    ui: SignedInPage, warren: WarrenServer
) -> None:
    _add_user(warren, "management")
    ui.go("/queues")
    ui.press("New queue", "main")
    ui.fill("name", "secret plan")
    ui.press("Cancel", "dialog")
    ui.press("Sign out")
    ui.sign_in(USER, PASSWORD)
    ui.shows("Overview", "main h1")
    assert "secret plan" not in ui.page.run("JSON.stringify(sessionStorage)")
    ui.press("Sign out")
    ui.sign_in()


def test_a_text_that_is_too_large_to_keep_is_sent_all_the_same(ui: SignedInPage) -> None:
    ui.go("/exchanges/%2F/amq.topic?tab=publish")
    field = "document.querySelector('main [name=payload]')"
    ui.page.act(field, "one.value = 'x'.repeat(6e6), one.dispatchEvent(new Event('input', "
                       "{bubbles: true}))")  # fmt: skip
    ui.press("Publish message")
    ui.shows("Not routed", "main [role=status]")


def test_an_old_link_to_a_page_that_is_gone_leads_to_the_first(ui: SignedInPage) -> None:
    ui.go("/exchanges?page=9")
    ui.shows("amq.topic", "main tbody")
    assert ui.page.run("location.hash") == "#/exchanges"
    ui.go("/subscriptions?page=9")
    ui.shows("No callback is subscribed yet", "main")
    assert not ui.page.run("document.querySelector('.messages').children.length")


def test_a_server_that_is_gone_is_named_and_asked_again(chromium: Browser) -> None:
    with WarrenServer() as server:
        ui = SignedInPage(chromium.new_page(), server)
        ui.open()
        ui.hide(True)  # else the live view is the first to find that the session is over
        server.stop()
        ui.go("/tunnels", shows="document.querySelector('main .problem')")
        ui.shows("Warren does not answer", "main h1")
        server.start()
        ui.press("Try again", "main")
        ui.sign_in()  # sessions are not kept
        ui.shows("Tunnels", "main h1")
        ui.page.errors.clear()  # the browser reports what it could not load
        chromium.close_pages()


def test_shortcuts_and_unknown_addresses(ui: SignedInPage) -> None:
    def press(key: str) -> None:
        ui.page.run(f"dispatchEvent.call(document.body, new KeyboardEvent('keydown', "
                    f"{{key: '{key}', bubbles: true}}))")  # fmt: skip

    press("g")
    press("q")
    ui.page.wait("document.querySelector('main.page h1').textContent === 'Queues'")
    press("/")
    ui.page.wait("document.activeElement.matches('[data-search]')")
    ui.page.run("document.activeElement.blur()")
    press("?")
    ui.shows("Search in the list", "dialog")
    ui.press("Close", "dialog")
    ui.page.resize(1360, 900)
    ui.press("Find\nCtrl K")
    ui.page.type("dialog input", "amq.top", enter=False)
    ui.shows("amq.topic", "dialog .found")
    ui.page.run("document.querySelector('dialog form').requestSubmit()")
    ui.page.wait("document.querySelector('main.page h1').textContent === 'amq.topic'")
    ui.go("/nowhere")
    ui.shows("There is no such page", "main")


def test_what_was_typed_outlives_a_reload_until_it_is_sent(ui: SignedInPage) -> None:
    ui.go("/queues")
    ui.press("New queue", "main")
    ui.fill("name", "half-typed")
    ui.page.reload()
    ui.press("New queue", "main")
    ui.page.wait("document.querySelector('dialog [name=name]').value === 'half-typed'")
    ui.press("Create queue", "dialog")
    ui.shows("half-typed", "main h1")
    ui.go("/queues")
    ui.press("New queue", "main")
    assert ui.page.run("document.querySelector('dialog [name=name]').value") == ""


def test_the_theme_is_kept_and_set_before_the_first_paint(ui: SignedInPage) -> None:
    theme = "document.documentElement.dataset.theme"
    ui.page.run("((list) => { list.value = 'dark'; list.dispatchEvent(new Event('change')); })"
                "(document.querySelector('.account select'))")  # fmt: skip
    assert ui.page.run(theme) == "dark"
    ui.page.reload()
    assert ui.page.run(theme) == "dark"
    assert ui.page.run("getComputedStyle(document.body).backgroundColor") == "rgb(19, 18, 17)"


def test_other_clients_get_text_at_the_root(warren: WarrenServer) -> None:
    plain = httpx.get(f"{warren.http_url}/")
    assert plain.headers["content-type"].startswith("text/plain")
    page = httpx.get(f"{warren.http_url}/", headers={"Accept": "text/html,*/*;q=0.8"})
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["content-security-policy"].startswith("default-src 'self';")
    assert page.headers["vary"] == "Accept" == plain.headers["vary"]


def test_the_navigation_folds_on_a_phone(ui: SignedInPage) -> None:
    page: Page = ui.page
    page.resize(360, 740)
    assert page.run("document.querySelector('.side nav').offsetHeight") == 0
    page.click(".menu")
    page.wait("document.querySelector('.side nav').offsetHeight > 0")
    page.resize(1360, 900)
