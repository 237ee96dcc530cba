"""What speaks to the hub under test."""

from __future__ import annotations

import pytest

from tests.support.http import Answer, Callback
from tests.support.ports import free_port
from warrenmq.app.conformance.client import HubClient
from warrenmq.app.conformance.options import Options
from warrenmq.app.conformance.results import Failed
from warrenmq.app.conformance.transcript import Transcript


@pytest.mark.parametrize("status", [307, 308])
async def test_redirects_to_another_hub_are_followed(status: int) -> None:
    """As subscribers have to (WebSub 5.1.2)."""
    with Callback() as first, Callback() as second:
        first.script(Answer(status, {"Location": second.url}))
        second.script(Answer(202, {"Content-Type": "text/plain"}, b"fine"))
        client, trace = HubClient(Options(hub=first.url)), Transcript()
        reply = await client.post([("hub.topic", "a&b"), ("hub.secret", "s3cret")], trace)
        await client.close()
        assert (reply.status, reply.content_type, reply.text) == (202, "text/plain", "fine")
        assert second.requests[0].body == b"hub.topic=a%26b&hub.secret=s3cret"
        assert second.requests[0].headers["Content-Type"] == "application/x-www-form-urlencoded"
    shown = f"-> POST {first.url} hub.topic=a&b hub.secret=(6 bytes): 202 fine"
    assert trace.lines == [shown]


async def test_no_answer_fails_the_check() -> None:
    client, trace = HubClient(Options(hub=f"http://127.0.0.1:{free_port()}/")), Transcript()
    with pytest.raises(Failed, match="did not answer"):
        await client.post([], trace)
    await client.close()
    assert "ConnectError" in trace.lines[0]
