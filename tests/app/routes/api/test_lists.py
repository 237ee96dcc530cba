"""Pages, filters, order and columns, by the list of queues; every list of RabbitMQ's has them."""

from __future__ import annotations

from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.support.amqp import Client
from warrenmq.app.responses import time_slice
from warrenmq.app.routes.api import lists
from warrenmq.app.routes.api.router import TABLES
from warrenmq.core.message.model import FieldValue, Properties

from .support import get, refused

READS = {
    path: methods["GET"] for table in TABLES for path, methods in table.items() if "GET" in methods
}
LISTS = [path for path, read in READS.items() if set(lists.LIST_QUERY) <= set(read.query)]
PARTS = {
    "vhost": "%2F",
    "exchange": "amq.topic",
    "source": "amq.topic",
    "destination": "q-00",
    "queue": "q-00",
    "connection": "tony",
    "user": "tony",
    "component": "shovel",
}


@pytest.fixture
async def queues(world: World) -> None:
    for number in range(25):
        await world.queue(f"q-{number:02}")
        for _ in range(number % 3):
            await world.engine.publish_to("/", (f"q-{number:02}",), "", Properties(), b"")


async def names(http: AsyncClient, query: str) -> list[str]:
    found = await get(http, f"/queues/%2F?{query}")
    items = found["items"] if isinstance(found, dict) else found
    return [item["name"] for item in items]


@pytest.mark.usefixtures("queues")
async def test_a_page_has_its_number_and_all_counts(http: AsyncClient) -> None:
    page = await get(http, "/queues/%2F?page=3&page_size=10&name=q-")
    items = page.pop("items")
    assert [item["name"] for item in items] == [f"q-{number}" for number in range(20, 25)]
    assert page == {
        "page": 3, "page_count": 3, "page_size": 10, "item_count": 5, "filtered_count": 25,
        "total_count": 25,
    }  # fmt: skip


@pytest.mark.usefixtures("queues")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("name=q-0&page=1&page_size=2", ["q-00", "q-01"]),
        ("name=-2&page=1", ["q-20", "q-21", "q-22", "q-23", "q-24"]),
        ("name=^q-.4$&use_regex=true&page=1&pagination=false", ["q-04", "q-14", "q-24"]),
        ("name=4$&page=1", []),
        ("sort=name&sort_reverse=true&page=1&page_size=2", ["q-24", "q-23"]),
        ("sort=messages&sort_reverse=true&page=1&page_size=2", ["q-23", "q-20"]),
        ("sort=memory&sort_reverse=true&page=1&page_size=2", ["q-23", "q-20"]),
        ("sort=message_bytes&page=2&page_size=9&name=q-", ["q-01"]),
        ("sort=arguments.nothing&page=1&page_size=2", ["q-00", "q-01"]),
        ("sort=message_stats.publish&page=2&page_size=9&name=q-", ["q-01"]),
    ],
)
async def test_filtered_and_sorted(http: AsyncClient, query: str, found: list[str]) -> None:
    assert (await names(http, query))[: len(found) or 1] == found


@pytest.mark.usefixtures("queues")
async def test_columns_are_all_that_is_sent(http: AsyncClient) -> None:
    found = await get(http, "/queues/%2F?columns=name,messages")
    assert found[1] == {"name": "q-01", "messages": 1}
    nested = "message_stats.publish_details.rate"
    found = await get(http, f"/queues/%2F?columns=vhost,{nested},nothing&page=1")
    assert found["items"][0] == {
        "vhost": "/", "message_stats": {"publish_details": {"rate": 0.0}},
    }  # fmt: skip
    assert await get(http, "/queues/%2F/q-02?columns=messages") == {"messages": 2}


@pytest.mark.parametrize(
    ("path", "columns"),
    [
        ("/overview", "cluster_name"), ("/nodes", "name"), ("/vhosts/%2F", "name"),
        ("/users/guest", "name,tags"), ("/whoami", "name"), ("/definitions", "product_name"),
        ("/definitions/%2F", "queues"), ("/nodes/{node}/memory", "memory.total.rss"),
    ],
)  # fmt: skip
async def test_columns_of_any_document(
    world: World, http: AsyncClient, path: str, columns: str
) -> None:
    world.broker.vhosts["/"].storage.save_vhost()
    path = path.format(node=world.context.node.name)
    found = await get(http, f"{path}?columns={columns},none")
    one = found[0] if isinstance(found, list) else found
    assert list(one) == columns.partition(".")[0].split(",")
    if "." in columns:
        assert list(one["memory"]["total"]) == ["rss"]


@pytest.mark.usefixtures("queues")
@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("page=0", "page is '0', it has to be a number from 1"),
        ("page=x", "page is 'x'"),
        ("page=1&page_size=501", "page_size is '501', it has to be a number from 1 to 500"),
        ("page=4&page_size=10", "page 4 is out of range: the list has 3 pages of 10 items"),
        ("page=1&name=(&use_regex=true", "pattern '(' is not a regular expression"),
        ("lengths_age=x&lengths_incr=5", "lengths_age is 'x', it has to be 1 to 86400 seconds"),
        ("msg_rates_incr=0", "msg_rates_incr is '0', it has to be 1 to 86400 seconds"),
    ],
)
async def test_bad_queries_are_refused(http: AsyncClient, query: str, reason: str) -> None:
    assert reason in refused(await http.get(f"/api/queues/%2F?{query}"), 400)


async def test_a_long_list_is_sent_in_pieces(
    world: World, http: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_slice, "SLICE_S", 0)
    for number in range(lists.PAGE_SIZE_MAX + 1):
        await world.queue(f"q-{number:03}")
    found = await get(http, "/queues/%2F")
    assert [one["name"] for one in found] == sorted(world.broker.vhosts["/"].queues)
    assert await names(http, "page=6&page_size=100") == ["q-500"]


@pytest.mark.parametrize("path", [one for one in LISTS if not one.startswith("/hub/")])
async def test_every_list_has_pages(world: World, http: AsyncClient, path: str) -> None:
    await world.queue("q-00")
    await world.exchange("q-00")
    await world.bind("amq.topic", "q-00")
    Client(world.broker, user="tony")
    await has_pages(http, path.format(**PARTS))


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("path", [one for one in LISTS if one.startswith("/hub/")])
async def test_lists_of_the_hub_have_pages(http: AsyncClient, path: str) -> None:
    await has_pages(http, path.format(**PARTS))


async def has_pages(http: AsyncClient, path: str) -> None:
    everything: list[Any] = await get(http, path)
    page = await get(http, f"{path}?page=1&page_size=500")
    assert page["items"] == everything
    assert page["total_count"] == page["filtered_count"] == len(everything)
    assert (await get(http, f"{path}?page=1&name=no-such-name"))["items"] == []


async def test_answers_with_pages_are_those_of_lists() -> None:
    assert set(LISTS) == {path for path, read in READS.items() if "Page[" in str(read.answers)}


async def test_arguments_are_integers_of_any_width(world: World, http: AsyncClient) -> None:
    arguments: dict[str, FieldValue] = {f"x-{bits}": 2**bits - 1 for bits in (7, 15, 31, 62)}
    arguments["x-inner"] = [dict(arguments)]
    client = Client(world.broker)
    client.call("Queue.Declare", queue="q", durable=True, arguments=dict(arguments))
    client.call("Exchange.Declare", exchange="x", exchange_type="fanout", arguments=dict(arguments))
    client.call("Queue.Bind", queue="q", exchange="x", arguments=dict(arguments))
    client.consume("q", arguments=dict(arguments))
    for path, named in (
        ("/queues", "q"), ("/queues/%2F?page=1", "q"), ("/queues/%2F/q", ""), ("/exchanges", "x"),
        ("/exchanges/%2F/x/bindings/source", ""), ("/consumers", ""),
    ):  # fmt: skip
        found = await get(http, path)
        items = found.get("items", [found]) if isinstance(found, dict) else found
        (shown,) = (one for one in items if not named or one["name"] == named)
        assert {**shown["arguments"]} == arguments
