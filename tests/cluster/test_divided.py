"""The work of one cluster divided among hubs by virtual hosts, as docs/scaling.md says."""

from __future__ import annotations

import re
import shlex
from contextlib import ExitStack

import pytest

from tests.conformance.webhooks import Site, form
from tests.support.http import Callback
from tests.support.hub_on_rabbitmq import PAGE, HubOnRabbitMQ
from tests.support.rabbitmq import RabbitMQServer, missing

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.promise,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]
HUBS = ("shop", "news")
COUNT = 50


def prepared(node: RabbitMQServer, vhost: str) -> str:
    """Makes a virtual host with its hub's user, by the commands of the page; returns the URL that
    the page gives to `--engine`, of this node."""
    block = PAGE.read_text().partition("## Dividing the work")[2].partition("```sh\n")[2]
    for line in block.partition("```")[0].replace("shop", vhost).splitlines():
        program, *arguments = shlex.split(line)
        if program == "rabbitmqctl":
            node.ctl(*arguments)
        else:
            url = re.sub(r"@.*/", f"@{node.host}:{node.port}/", arguments[-1])
    node.ctl("set_permissions", "-p", vhost, "guest", ".*", ".*", ".*")
    return url


def test_each_hub_serves_the_virtual_hosts_of_its_user() -> None:
    with ExitStack() as stack:
        node = stack.enter_context(RabbitMQServer("rabbitmq_management"))
        callbacks = [stack.enter_context(Callback()) for _ in HUBS]
        sites = []
        for vhost, callback in zip(HUBS, callbacks, strict=True):
            flags = ["--engine", prepared(node, vhost)]
            hub = stack.enter_context(HubOnRabbitMQ(node, flags))
            sites.append(site := stack.enter_context(Site(hub)))
            site.http.put(f"/{vhost}/endpoint/x/events").raise_for_status()
            query = form("subscribe", callback.url, "#")
            site.http.post(f"/{vhost}/subscribe/x/events", data=query).raise_for_status()
        for number in range(COUNT):
            for vhost, site in zip(HUBS, sites, strict=True):
                body = f"{vhost} {number}".encode()
                site.http.post(f"/{vhost}/endpoint/x/events", content=body).raise_for_status()
        for vhost, callback in zip(HUBS, callbacks, strict=True):
            callback.wait(COUNT)
            expected = {f"{vhost} {number}".encode() for number in range(COUNT)}
            assert {one.body for one in callback.deliveries} == expected
            assert len(callback.deliveries) == COUNT
        shop, news = sites
        assert shop.http.post("/news/endpoint/x/events", content=b"1").status_code == 404
        assert len(news.get("/api/hub/subscriptions")["subscriptions"]) == 1
