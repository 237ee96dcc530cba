"""Subscriptions whose source is deleted, and declared again."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.http import Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .raw import Channel

pytestmark = pytest.mark.differs("RabbitMQ pushes to nobody")


def test_suspended_subscriptions_miss_no_message(
    warren: WarrenServer, channel: Channel, name: str
) -> None:
    def listed(**query: str) -> list[dict[str, Any]]:
        answer = http.get("/subscriptions", params={"resource_name": name, **query})
        found: list[dict[str, Any]] = answer.json()["subscriptions"]
        return found

    url, user = warren.http_url, ("guest", "guest")
    with Callback() as callback, httpx.Client(base_url=url, auth=user) as http:
        declare = {"exchange": name, "exchange_type": "fanout", "durable": True}
        channel.call("Exchange.Declare", **declare)
        form = {"hub.mode": "subscribe", "hub.callback": callback.url, "hub.topic": ""}
        assert http.post(f"/subscribe/x/{name}", data=form).status_code == 204
        channel.call("Exchange.Delete", exchange=name)
        [found] = listed(status="inactive")
        assert found["suspended_reason"] == f"exchange '{name}' in vhost '/' was deleted"
        again = http.post("/subscriptions", json={"subscriptions": [found]}).json()
        [result] = again["rabbithub_batch_results"]
        assert "no exchange" in result["status"]["consumers"][0]["status"]
        channel.call("Confirm.Select")
        channel.send("Exchange.Declare", **declare)
        channel.publish(b"first", exchange=name)
        channel.expect("Exchange.DeclareOk")
        channel.expect("Basic.Ack")
        assert [one.body for one in callback.wait(1)] == [b"first"]
        wait_until(lambda: listed(status="active") != [], 20, "an active subscription")
