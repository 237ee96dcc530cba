"""/api/hub/feeds: registered, listed, changed, paused and removed; rights and limits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.routes.api.support import delete, get, refused, tagged
from tests.hub.support import until
from tests.support.feed_site import FeedSite, Page, rss
from tests.support.settings import hub_settings
from warrenmq.hub.feeds import lists
from warrenmq.hub.service import Hub

PATH = "/api/hub/feeds"


@pytest.fixture
def site() -> Iterator[FeedSite]:
    with FeedSite() as site:
        for name in ("a", "b", "c"):
            site.pages[f"/{name}"] = Page(rss("one", title=f"News of {name}"))
        yield site


@pytest.fixture
async def client(world: World, hub: Hub) -> Any:
    async with world.client() as http:
        yield http


async def register(http: AsyncClient, site: FeedSite, path: str, **body: Any) -> dict[str, Any]:
    answer = await http.post(PATH, json={"url": f"{site.url}/{path}", **body})
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"].endswith(f"/api/hub/feeds/{answer.json()['name']}")
    return dict(answer.json())


async def test_registered_listed_and_removed(client: AsyncClient, site: FeedSite) -> None:
    found = await register(client, site, "a", first=1, min_interval_s=3_600)
    assert (found["name"], found["published"], found["state"]) == ("news-of-a", 1, "ok")
    assert (found["exchange"], found["routing_key"]) == ("hub.feeds", "news-of-a")
    assert found["documents"]["atom"].endswith("/feeds/news-of-a.atom")
    assert found["interval_s"] >= 3_600 and found["health"].startswith("Healthy: last read")
    await register(client, site, "b", name="beta")
    await client.post(f"{PATH}/beta/pause")
    listed = await get(client, "/hub/feeds")
    assert [feed["name"] for feed in listed["items"]] == ["beta", "news-of-a"]
    assert listed["statistics"]["feeds"] == 2
    assert (listed["statistics"]["states"]["ok"], listed["statistics"]["published"]) == (1, 1)
    for query, names in {
        "search=OF%20A": ["news-of-a"], "state=paused": ["beta"], "page_size=1&page=2":
        ["news-of-a"], "search=nothing": [], "vhost=%2F&state=ok": ["news-of-a"],
        "sort=published": ["beta", "news-of-a"],
        "sort=published&sort_reverse=true": ["news-of-a", "beta"],
    }.items():  # fmt: skip
        listed = await get(client, f"/hub/feeds?{query}")
        assert [feed["name"] for feed in listed["items"]] == names, query
    assert await delete(client, "/hub/feeds/beta") == 204
    for method in ("GET", "DELETE", "PATCH"):
        refused(await client.request(method, f"{PATH}/beta", json={}), 404)
    refused(await client.post(f"{PATH}/beta/poll", json={}), 404)


async def test_paused_resumed_and_changed(client: AsyncClient, site: FeedSite) -> None:
    await register(client, site, "a", name="a")
    paused = (await client.post(f"{PATH}/a/pause")).json()
    assert (paused["state"], paused["next_poll_at"]) == ("paused", None)
    assert (await client.post(f"{PATH}/a/resume")).json()["state"] == "ok"
    given = {"min_interval_s": 600, "url": f" {site.url}/b#news "}
    answer = await client.patch(f"{PATH}/a", json=given)
    assert (answer.json()["url"], answer.json()["min_interval_s"]) == (site.url + "/b", 600)
    answer = await client.patch(f"{PATH}/a", json={"min_interval_s": None})
    assert (answer.json()["url"], answer.json()["min_interval_s"]) == (site.url + "/b", None)
    assert (await client.post(f"{PATH}/a/poll")).json()["title"] == "News of b"


@pytest.mark.parametrize("field", ["url", "hub"])
@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("localhost:8000/x", "has no scheme: write http:// or https://"),
        ("http://169.254.169.254/x", "not public"),
        ("x" * 3_000, ""),
    ],
)
async def test_a_url_is_checked_however_it_is_given(
    client: AsyncClient, site: FeedSite, field: str, url: str, reason: str
) -> None:
    await register(client, site, "a", name="a")
    given = {"url": f"{site.url}/b", field: url}
    for answer in (
        await client.post(PATH, json=given),
        await client.patch(f"{PATH}/a", json={field: url}),
    ):
        assert reason in refused(answer, 422)
        assert answer.json()["field"] == field
    assert (await get(client, "/hub/feeds/a"))["url"] == f"{site.url}/a"


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({}, 400, "'url'"),
        ({"url": "gopher://x/"}, 422, "http"),
        ({"url": "http://10.0.0.1/"}, 422, "not public"),
        ({"first": -1}, 400, "none, or 0 to 1000"),
        ({"first": "some"}, 400, "whole number"),
        ({"min_interval_s": 1}, 400, "60 to 604800"),
        ({"name": "a b"}, 400, "letters"),
        ({"name": "import"}, 400, "not 'import'"),
        ({"name": "x.#"}, 400, "letters"),
        ({"selector": "x" * 1_001}, 400, "1001 characters"),
        ({"interval": 5}, 400, "unknown key 'interval'"),
        ({"vhost": "other"}, 404, "no vhost 'other'"),
    ],
)
async def test_a_bad_request_is_refused(
    client: AsyncClient, site: FeedSite, body: dict[str, Any], status: int, reason: str
) -> None:
    url = {"url": f"{site.url}/a"} if body else {}
    assert reason in refused(await client.post(PATH, json={**url, **body}), status)
    assert (await get(client, "/hub/feeds"))["items"] == []


async def test_a_name_and_a_url_are_registered_once(client: AsyncClient, site: FeedSite) -> None:
    await register(client, site, "a", name="one")
    assert "'one'" in refused(await client.post(PATH, json={"url": site.url + "/a"}), 409)
    taken = {"url": site.url + "/b", "name": "one"}
    assert "another feed" in refused(await client.post(PATH, json=taken), 409)
    await register(client, site, "b", name="two")
    moved = await client.patch(f"{PATH}/two", json={"url": site.url + "/a"})
    assert "'one'" in refused(moved, 409)
    same = {"url": site.url.replace("http:", "HTTP:") + "/a"}
    assert "'one'" in refused(await client.post(PATH, json=same), 409)


async def test_a_page_is_registered_once_with_each_selector(
    client: AsyncClient, hub: Hub, site: FeedSite
) -> None:
    url = f"{site.url}/page"
    site.pages["/page"] = Page(b"<h1>One</h1><p>Two</p>", "text/html")
    for name, selector in (("head", "h1"), ("text", "p")):
        await register(client, site, "page", name=name, selector=selector)
    again = {"url": url, "selector": "p"}
    assert "'text'" in refused(await client.post(PATH, json=again), 409)
    changed = await client.patch(f"{PATH}/head", json={"selector": "p"})
    assert "'text'" in refused(changed, 409)
    site.pages["/page"] = Page(b"<h1>1</h1><p>2</p>", "text/html")
    assert await hub.feeds.take_ping(url)

    async def are_both_polled() -> bool:
        found = (await get(client, "/hub/feeds"))["items"]
        return [(one["name"], one["published"]) for one in found] == [("head", 1), ("text", 1)]

    await until(are_both_polled, "both polls")
    await client.delete(f"{PATH}/text")
    assert (await client.patch(f"{PATH}/head", json={"selector": "p"})).status_code == 200
    assert "'head'" in refused(await client.post(PATH, json=again), 409)
    await register(client, site, "page", name="text", selector="h1")


async def test_the_exchange_needs_the_permission_to_write(
    world: World, client: AsyncClient, site: FeedSite
) -> None:
    await register(client, site, "a", name="mine")
    async with world.client(auth=tagged(world, "management")) as http:
        body = {"url": site.url + "/b", "name": "eu.b"}
        refused(await http.post(PATH, json=body), 403)
        refused(await http.post(f"{PATH}/mine/pause"), 403)
        assert (await get(http, "/hub/feeds/mine"))["name"] == "mine"
        world.users.set_permissions("someone", "/", "", r"hub\.feeds", "")
        world.users.set_topic_permission("someone", "/", "hub.feeds", r"^eu\.", "")
        assert "'name'" in refused(await http.post(PATH, json={"url": site.url + "/b"}), 403)
        refused(await http.delete(f"{PATH}/mine"), 403)
        assert (await http.post(PATH, json=body)).status_code == 201
        world.users.clear_permissions("someone", "/")
        refused(await http.get(f"{PATH}/mine"), 404)
        assert (await get(http, "/hub/feeds"))["items"] == []
    async with world.client(auth=tagged(world, name="nobody")) as http:
        refused(await http.get(PATH), 403)


async def test_the_url_of_a_private_feed_is_its_owners(
    world: World, client: AsyncClient, site: FeedSite
) -> None:
    site.pages["/a?key=SECRET"] = site.pages["/a"]
    await register(client, site, "a?key=SECRET", name="paid", visibility="private")
    await register(client, site, "b", name="free")
    site.pages["/a?key=SECRET"] = Page(status=301, headers={"Location": f"{site.url}/b?SECRET"})
    site.pages["/b?SECRET"] = site.pages["/b"]
    await client.patch(f"{PATH}/free", json={"url": f"{site.url}/b?SECRET"})
    assert "SECRET" in (await client.post(f"{PATH}/paid/poll")).json()["health"]
    async with world.client(auth=tagged(world, "management")) as http:
        world.users.set_permissions("someone", "/", "", "hub.feeds", "hub.feeds")
        found = await get(http, "/hub/feeds/paid")
        assert found["url"] == f"{site.url}/..." and f"{site.url}/..." in found["health"]
        assert (await get(http, "/hub/feeds/free"))["url"] == f"{site.url}/b?SECRET"
        await client.patch(f"{PATH}/free", json={"url": f"{site.url}/b"})
        listed = await http.get(f"{PATH}?sort=name")
        assert len(listed.json()["items"]) == 2 and "SECRET" not in listed.text
        assert (await get(http, "/hub/feeds?search=key%3Dsecret"))["items"] == []
        exported = (await http.get(f"{PATH}.opml")).text
        assert f"{site.url}/b" in exported and "paid" not in exported
        changed = await http.patch(f"{PATH}/paid", json={"visibility": "public"})
        assert "feed 'paid' is private" in refused(changed, 403)
        for method, path in (("DELETE", "paid"), ("POST", "paid/poll"), ("POST", "paid/pause")):
            refused(await http.request(method, f"{PATH}/{path}", json={}), 403)
    assert (await get(client, "/hub/feeds?search=key%3Dsecret"))["items"][0]["name"] == "paid"
    assert "SECRET" in (await client.get(f"{PATH}.opml")).text


async def test_feeds_and_lists_end_with_their_owner(world: World, hub: Hub, site: FeedSite) -> None:
    credentials = tagged(world, "management")
    world.users.set_permissions("someone", "/", "", r"hub\.feeds", "")
    link = '<outline text="Someone\'s link" type="link" url="http://example.org/"/>'
    outlines = f'<opml version="1.1"><body>{link}<outline xmlUrl="{site.url}/b"/></body></opml>'
    async with world.client(auth=credentials) as http:
        await register(http, site, "a")
        job = (await http.post(f"{PATH}/import", content=outlines)).json()["id"]

        async def is_done() -> bool:
            return bool((await get(http, f"/hub/feeds/import/{job}"))["state"] == "done")

        await until(is_done, "import")
        assert "Someone's link" in (await http.get(f"{PATH}.opml")).text
    async with world.client(auth=tagged(world, "management", name="other")) as http:
        exported = (await http.get(f"{PATH}.opml")).text
        assert f"{site.url}/b" in exported and "Someone's link" not in exported
    async with world.client() as http:
        assert "Someone's link" in (await http.get(f"{PATH}.opml")).text
        hub.forget_owner("someone")

        async def none_is_left() -> bool:
            exported = (await http.get(f"{PATH}.opml")).text
            return not (await get(http, "/hub/feeds"))["items"] and "outline" not in exported

        await until(none_is_left, "removal")


async def test_a_list_that_grows_with_each_import(
    client: AsyncClient, site: FeedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "MAX_LIST_BYTES", 600)
    ends = []
    for path in ("a", "b"):
        outline = f'<outline xmlUrl="{site.url}/{path}" notes="{"x" * 100}"/>'
        body = f"<opml><body>{outline * 2}</body></opml>"
        job = (await client.post(f"{PATH}/import", content=body)).json()["id"]

        async def is_over(job: str = job) -> bool:
            return bool((await get(client, f"/hub/feeds/import/{job}"))["ended_at"])

        await until(is_over, "import")
        ends.append(await get(client, f"/hub/feeds/import/{job}"))
    assert [one["state"] for one in ends] == ["done", "failed"]
    assert "at most 600 are stored" in ends[1]["error"]
    exported = (await client.get(f"{PATH}.opml")).text
    assert exported.count("notes") == 2 and f"{site.url}/b" in exported


async def test_a_feed_and_an_output_at_once_do_not_get_one_name(
    client: AsyncClient, site: FeedSite
) -> None:
    output = {"sources": [{"exchange": "amq.topic"}]}

    async def register_both(number: int) -> set[int]:
        name = f"name{number}"
        site.pages[f"/{name}"] = site.pages["/a"]
        feed = {"url": f"{site.url}/{name}", "name": name}
        made = client.post(PATH, json=feed), client.put(f"/api/hub/outputs/{name}", json=output)
        return {answer.status_code for answer in await asyncio.gather(*made)}

    for number in range(30):
        assert await register_both(number) == {201, 409}


async def test_a_user_has_a_limited_number_of_feeds(
    world: World, tmp_path: Path, site: FeedSite
) -> None:
    settings = hub_settings(allow_loopback=True, max_feeds_per_user=1)
    hub = Hub(world.engine, settings, tmp_path)
    world.context = replace(world.context, hub=hub)
    await hub.start()
    try:
        async with world.client() as http:
            await register(http, site, "a")
            answer = await http.post(PATH, json={"url": site.url + "/b"})
            assert "has 1 feed, 1 more" in refused(answer, 403)
    finally:
        await hub.stop()
