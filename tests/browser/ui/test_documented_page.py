"""The script of docs/security.md for a page of this server, in a page where a user is signed in."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest

from .signed_in import SignedInPage

pytestmark = pytest.mark.thorough

DOCUMENT = (Path(__file__).parents[3] / "docs" / "security.md").read_text()


def test_a_page_reads_an_exchange_with_a_token_of_its_own(ui: SignedInPage) -> None:
    (script,) = re.findall(r"^```js\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)
    with httpx.Client(base_url=ui.server.http_url, auth=("guest", "guest")) as http:
        http.put("/endpoint/x/news", params={"amqp.exchange_type": "topic"}).raise_for_status()
        opened = "new Promise((resolve) => stream.onopen = resolve)"
        kept = "window.messages = []; stream.onmessage = (one) => messages.push(one.data)"
        ui.page.run(f"(async () => {{ {script} {kept}; await {opened}; }})()")
        http.post("/endpoint/x/news", params={"hub.topic": "eu.fr"}, content=b"bonjour")
        ui.page.wait("window.messages.length")
        assert json.loads(ui.page.run("window.messages[0]"))["body"] == "bonjour"
        assert len(http.get("/api/hub/tokens").json()) == 1
        ui.page.run("(dispatchEvent(new Event('pagehide')), null)")
        ui.page.wait(
            "fetch('/api/hub/tokens').then((one) => one.json()).then((all) => !all.length)"
        )
