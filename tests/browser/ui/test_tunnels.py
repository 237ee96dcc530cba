"""Tunnels in the web UI."""

from __future__ import annotations

import httpx
import pytest

from tests.support.server import WarrenServer

from .signed_in import SignedInPage

pytestmark = pytest.mark.thorough


def test_a_tunnel_is_shown_and_closed(ui: SignedInPage, warren: WarrenServer) -> None:
    ui.go("/tunnels")
    ui.shows("No tunnels", "main")
    ui.shows("warren tunnel 8000", "main")
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest")) as client:
        enrolled = client.post("/reversehttp", data={"name": "ada", "lease": "600"})
        enrolled.raise_for_status()
        ui.go("/tunnels")
        ui.shows("No poll waits", "tbody")
        ui.shows("http://ada.tun.localhost", "tbody")
        ui.press("Close", "tbody")
        ui.press("Close the tunnel ada", "dialog")
        ui.shows("No tunnels", "main")
        assert client.get(enrolled.headers["location"]).status_code == 410


def test_a_blocked_label_is_shown_and_unblocked(ui: SignedInPage, warren: WarrenServer) -> None:
    keeper = ("keeper", "burrow-and-meadow")
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest")) as client:
        user = {"password": keeper[1], "tags": "management"}
        client.put(f"/api/users/{keeper[0]}", json=user).raise_for_status()
        enrolled = client.post("/reversehttp", data={"name": "eve"}, auth=keeper)
        enrolled.raise_for_status()
        client.delete("/api/hub/tunnels/eve").raise_for_status()
        assert client.post("/reversehttp", data={"name": "eve"}, auth=keeper).is_error
        ui.go("/tunnels")
        ui.shows("Blocked labels", "main")
        ui.press("Unblock", "main")
        ui.press("Unblock the label eve", "dialog")
        ui.page.wait("!document.querySelector('main').innerText.includes('Blocked labels')")
        client.post("/reversehttp", data={"name": "eve"}, auth=keeper).raise_for_status()
