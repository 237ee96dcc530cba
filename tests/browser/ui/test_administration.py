"""Users, virtual hosts, policies, definitions, log and audit log in the web UI."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.server import WarrenServer

from .signed_in import SignedInPage

pytestmark = pytest.mark.thorough

PASSWORD = "burrow-and-meadow"
DEFINITION = "document.querySelector('dialog [name=definition]').value"
ADDITION = {"exchanges": [{"name": "imported", "vhost": "/", "type": "fanout", "durable": True}]}


@pytest.fixture
def api(warren: WarrenServer) -> Iterator[httpx.Client]:
    """The management API, for what the pages have done."""
    with httpx.Client(base_url=f"{warren.http_url}/api", auth=("guest", "guest")) as client:
        yield client


def found(api: httpx.Client, path: str) -> Any:
    return api.get(path).raise_for_status().json()


def test_a_user_is_made_changed_and_deleted(ui: SignedInPage, api: httpx.Client) -> None:
    ui.go("/users")
    ui.press("New user", "main")
    for name, value in {"name": "ada", "password": PASSWORD, "again": PASSWORD}.items():
        ui.fill(name, value)
    ui.press("Create user", "dialog")
    ui.shows("The user may enter no virtual host yet.", "main")
    ui.press("Set permissions", "main")
    ui.fill("write", "^orders")
    ui.press("Set permissions", "dialog")
    ui.shows("^orders", "main table")
    assert found(api, "/permissions/%2F/ada")["write"] == "^orders"
    before = found(api, "/users/ada")
    ui.press("Change tags and limits", "main")
    ui.fill("tags", "monitoring")
    ui.fill("max-connections", "7")
    ui.press("Save", "dialog")
    ui.shows("at most 7", "main")
    after = found(api, "/users/ada")
    assert (after["tags"], after["limits"]) == (["monitoring"], {"max-connections": 7})
    assert after["password_hash"] == before["password_hash"]
    ui.press("Delete", "main")
    ui.page.wait("document.querySelector('dialog button[type=submit]').disabled")
    ui.fill("typed", "ada")
    ui.press("Delete the user ada", "dialog")
    ui.page.wait("document.querySelector('main h1').textContent === 'Users'")
    assert api.get("/users/ada").status_code == 404


def test_passwords_that_differ_are_told_beside_the_field(ui: SignedInPage) -> None:
    ui.go("/users")
    ui.press("New user", "main")
    for name, value in {"name": "bea", "password": PASSWORD, "again": "other"}.items():
        ui.fill(name, value)
    ui.press("Create user", "dialog")
    ui.shows("The passwords differ.", "dialog")
    assert ui.page.run("document.querySelector('[name=again]').ariaInvalid") == "true"


def test_a_virtual_host_is_made_limited_and_deleted(ui: SignedInPage, api: httpx.Client) -> None:
    ui.go("/vhosts")
    ui.press("New virtual host", "main")
    ui.fill("name", "shop")
    ui.fill("default_queue_type", "quorum")
    ui.press("Create virtual host", "dialog")
    ui.shows("quorum", "main")
    ui.press("Change", "main")
    ui.fill("max-queues", "3")
    ui.fill("description", "orders of the shop")
    ui.press("Save", "dialog")
    ui.shows("orders of the shop", "main")
    assert found(api, "/vhost-limits/shop") == [{"vhost": "shop", "value": {"max-queues": 3}}]
    ui.go("/limits")
    ui.shows("at most 3", "main")
    ui.go("/vhosts/shop")
    ui.press("Delete", "main")
    ui.fill("typed", "shop")
    ui.press("Delete the virtual host shop", "dialog")
    ui.page.wait("document.querySelector('main h1').textContent === 'Virtual hosts'")
    assert api.get("/vhosts/shop").status_code == 404


def test_a_policy_is_in_force_and_goes(ui: SignedInPage, api: httpx.Client) -> None:
    api.put("/queues/%2F/orders", json={}).raise_for_status()
    kept = {"pattern": "^$", "definition": {"max-length": 1}}
    api.put("/policies/%2F/zero", json=kept).raise_for_status()
    ui.go("/policies")
    ui.press("New policy", "main")
    for name, value in {"name": "short", "pattern": "^orders$", "definition": '{"max": 5}'}.items():
        ui.fill(name, value)
    ui.press("Create policy", "dialog")
    ui.shows("max", "dialog [role=alert]")
    ui.fill("definition", '{"max-length": 5}')
    ui.press("Create policy", "dialog")
    ui.shows("max-length: 5", "main")
    queue = found(api, "/queues/%2F/orders")
    assert (queue["policy"], queue["effective_policy_definition"]) == ("short", {"max-length": 5})
    ui.press("Change", "main")
    ui.fill("definition", '{"max-length": 7}')
    ui.press("Save", "dialog")
    ui.shows("max-length: 7", "main")
    ui.press("Change", "main")
    assert json.loads(ui.page.run(DEFINITION)) == {"max-length": 7}
    ui.press("Cancel", "dialog")
    ui.point("main tbody td")
    ui.press("Delete", "main")
    ui.press("Keep short", "dialog")
    ui.press("Delete", "main")
    ui.fill("typed", "short")
    ui.press("Delete the policy short", "dialog")
    ui.page.wait("document.querySelectorAll('main tbody tr').length === 1")
    assert [one["name"] for one in found(api, "/policies/%2F")] == ["zero"]


def give(ui: SignedInPage, text: str) -> None:
    """Chooses a file with definitions, and adds them."""
    choose = "document.querySelector('input[type=file]')"
    ui.page.run(
        f"((chosen) => {{ chosen.items.add(new File([{json.dumps(text)}], 'd.json')); "
        f"{choose}.files = chosen.files; {choose}.dispatchEvent(new Event('change')); }})"
        "(new DataTransfer())"
    )


def add(ui: SignedInPage, number: str) -> None:
    ui.press("Import definitions", "main")
    ui.press(f"Add {number} to the server", "dialog")


def test_definitions_are_looked_at_and_added(ui: SignedInPage, api: httpx.Client) -> None:
    ui.go("/definitions")
    give(ui, "{broken")
    ui.shows("d.json is not JSON", "main")
    give(ui, json.dumps({"queues": [{"name": "no", "vhost": "nowhere", "durable": True}]}))
    add(ui, "1 definition")
    ui.shows("nowhere", ".messages")
    give(ui, json.dumps({**ADDITION, "shoes": []}))
    add(ui, "1 definition")
    ui.shows("Added 1 definition to the server.", ".messages")
    ui.shows("shoes: left out: the key is not known", "main .notice")
    assert found(api, "/exchanges/%2F/imported")["type"] == "fanout"


def test_definitions_that_were_saved_come_back(ui: SignedInPage, api: httpx.Client) -> None:
    kept = {"durable": True, "arguments": {"x-max-length": 5}}
    api.put("/queues/%2F/kept", json=kept).raise_for_status()
    ui.go("/definitions")
    ui.page.run("void (URL.createObjectURL = (file) => { saved = file; return '#/definitions'; })")
    ui.press("Download definitions")
    ui.page.wait("saved")
    text = ui.page.run("saved.text()")
    api.delete("/queues/%2F/kept").raise_for_status()
    give(ui, text)
    definitions = json.loads(text)
    number = sum(len(part) for part in definitions.values() if isinstance(part, list))
    add(ui, f"{number} definitions")
    ui.shows(f"Added {number} definitions to the server.", ".messages")
    assert found(api, "/queues/%2F/kept")["arguments"] == kept["arguments"]


def test_the_audit_log_has_changes_with_what_was_before(
    ui: SignedInPage, api: httpx.Client
) -> None:
    api.put("/vhosts/audited", json={"description": "one"}).raise_for_status()
    api.put("/vhosts/audited", json={"description": "two"}).raise_for_status()
    ui.go("/audit?object=/api/vhosts/audited")
    ui.shows("/vhosts/audited", "main tbody")
    ui.press("Details", "main tbody")
    ui.shows('"description": "one"', "dialog")
    ui.press("Close", "dialog")


def test_the_log_shows_lines_as_they_come(ui: SignedInPage, warren: WarrenServer) -> None:
    ui.go("/log")
    ui.press("Set the level of an area", "main")
    ui.fill("area", "nowhere")
    ui.press("Set level", "dialog")
    ui.shows("there is no area 'nowhere'", "dialog")
    ui.fill("area", "app.access")
    ui.press("Set level", "dialog")
    ui.shows("app.access", "main .facts")
    httpx.get(f"{warren.http_url}/api/overview", auth=("guest", "wrong"))
    ui.shows("guest", "main tbody")
