"""/api/hub/pipeline: runs and archives are reported, listed and forgotten."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.routes.api.support import delete, get, put, refused, tagged
from warrenmq.core.clock import ManualClock
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.owner_rights import AllowAll
from warrenmq.hub.processes.starter import ProcessStarter
from warrenmq.hub.results.results import Results
from warrenmq.hub.runs.runs import LOST_AFTER_S, Runs
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.streams.archives import ArchiveRegistry
from warrenmq.hub.streams.streams import Streams
from warrenmq.hub.tasks import Tasks

RUN = "/hub/pipeline/runs/archive/one"
ARCHIVE = "/hub/pipeline/archives/%2F/log/cold"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(autouse=True)
async def _parts(world: World, clock: ManualClock, tmp_path: Path) -> AsyncIterator[None]:
    storage = Storage(tmp_path, None, Sealer(tmp_path / "key"))
    hub: Any = world.hub
    hub.runs = Runs(storage, clock, Tasks(), AllowAll())
    hub.results = Results(storage, world.engine)
    hub.archives, hub.streams = (
        ArchiveRegistry(world.engine),
        Streams(world.engine, ProcessStarter()),
    )
    await world.queue("log", queue_type="stream")
    await world.queue("plain")
    yield
    await storage.close()


async def runs(http: AsyncClient) -> Any:
    return (await get(http, "/hub/pipeline"))["runs"]


async def archives(http: AsyncClient) -> Any:
    return (await get(http, "/hub/pipeline"))["archives"]


async def test_a_run_from_its_beginning_to_its_end(http: AsyncClient, clock: ManualClock) -> None:
    assert await get(http, "/hub/pipeline") == {"runs": [], "captures": [], "archives": []}
    assert await put(http, RUN, state="running", error=None, stream="log", at="ignored") == 201
    clock.advance(5_000)
    assert await put(http, RUN, state="running", rows=7, lag=3, dropped=2) == 204
    (run,) = await runs(http)
    assert run.pop("started") < run.pop("updated")
    assert run == {
        "job": "archive", "run": "one", "vhost": "/", "stream": "log", "owner": "guest",
        "state": "running", "rows": 7, "lag": 3, "dropped": 2, "error": "",
    }  # fmt: skip
    clock.advance(LOST_AFTER_S * 1000 + 1000)
    assert (await runs(http))[0]["state"] == "lost"
    assert await put(http, RUN, state="failed", error="the disk is full") == 204
    clock.advance(LOST_AFTER_S * 1000 + 1000)
    (run,) = await runs(http)
    assert (run["state"], run["error"]) == ("failed", "the disk is full")
    assert await delete(http, RUN) == 204
    assert await runs(http) == []
    refused(await http.delete("/api" + RUN), 404)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (RUN, {}, 400),
        (RUN, {"state": "lost"}, 400),
        (RUN, {"state": "done", "rows": -1}, 400),
        (RUN, {"state": "done", "rows": "many"}, 400),
        (RUN, {"state": "done", "lag": 2**63}, 400),
        (RUN, {"state": "done", "dropped": -1}, 400),
        (RUN, {"state": "done", "error": "x" * 8_001}, 400),
        (RUN, {"state": "done", "stream": "x" * 256}, 400),
        (RUN, {"state": "done", "vhost": "no"}, 404),
        (RUN, {"state": "done", "vhost": "closed"}, 403),
        ("/hub/pipeline/runs/archive/" + "x" * 201, {"state": "done"}, 400),
        ("/hub/pipeline/runs/a%0Ab/one", {"state": "done"}, 400),
        (ARCHIVE, {}, 400),
        (ARCHIVE, {"offset": -1}, 400),
        (ARCHIVE, {"offset": 1}, 409),
        (ARCHIVE, {"offset": 0, "manifest": "x" * 4_097}, 400),
        (ARCHIVE, {"offset": 0, "incarnation": "another"}, 410),
        (ARCHIVE + "?source=both", {"offset": 0}, 400),
        (ARCHIVE + "?source=exchange", {"offset": 0}, 404),
        ("/hub/pipeline/archives/%2F/plain/cold", {"offset": 0}, 409),
        ("/hub/pipeline/archives/%2F/none/cold", {"offset": 0}, 404),
        ("/hub/pipeline/archives/no/log/cold", {"offset": 0}, 404),
        ("/hub/pipeline/archives/%2F/log/" + "x" * 256, {"offset": 0}, 400),
    ],
)
async def test_bad_reports_are_refused(
    http: AsyncClient, path: str, body: dict[str, Any], status: int
) -> None:
    refused(await http.put("/api" + path, json=body), status)
    assert await get(http, "/hub/pipeline") == {"runs": [], "captures": [], "archives": []}


async def test_a_run_is_its_owners(world: World, http: AsyncClient) -> None:
    """No tag is needed. Others see it in a virtual host that they may enter."""
    async with world.client(auth=tagged(world)) as other:
        assert await put(other, RUN, state="running") == 201
        assert "another user" in refused(await http.put("/api" + RUN, json={"state": "done"}), 403)
        elsewhere = "/hub/pipeline/runs/archive/two"
        assert await put(http, elsewhere, state="running", vhost="other/one") == 201
        assert [run["run"] for run in await runs(other)] == ["one"]
        refused(await other.delete("/api" + elsewhere), 404)
        third = "/hub/pipeline/runs/archive/three"
        assert await put(http, third, state="running") == 201
        refused(await other.delete("/api" + third), 403)
    assert await delete(http, RUN) == 204, "an administrator"


async def test_captures_are_bindings_of_streams_that_the_user_may_read(
    world: World, http: AsyncClient
) -> None:
    for queue, exchange in (("log", "amq.topic"), ("plain", "amq.topic"), ("log", "amq.fanout")):
        await world.bind(exchange, queue, "eu.#")
    async with world.client(auth=tagged(world)) as other:
        for read, shown in (("^log$", ["amq.topic", "amq.fanout"]), ("^plain$", [])):
            world.users.set_permissions("someone", "/", "", "", read)
            captures = (await get(other, "/hub/pipeline"))["captures"]
            assert [one["exchange"] for one in captures] == shown
    assert (await get(http, "/hub/pipeline"))["captures"][0] == {
        "vhost": "/", "exchange": "amq.topic", "routing_key": "eu.#", "stream": "log",
        "first": 0, "next": 0,
    }  # fmt: skip


async def test_an_archive_is_reported_and_forgotten(world: World, http: AsyncClient) -> None:
    assert await put(http, ARCHIVE, offset=0, manifest="/cold") == 201
    assert await put(http, ARCHIVE, offset=0, manifest="/colder") == 204
    (found,) = await archives(http)
    assert found.pop("updated")
    assert found == {
        "vhost": "/", "stream": "log", "source": "queue", "archive": "cold", "offset": 0,
        "lag": 0, "bytes_behind": 0, "manifest": "/colder", "retention_waits": False,
        "exceeded": None,
    }  # fmt: skip
    assert await delete(http, ARCHIVE) == 204
    refused(await http.delete("/api" + ARCHIVE), 404)
    assert await archives(http) == []


async def test_reporting_an_archive_needs_configure_and_read(
    world: World, http: AsyncClient
) -> None:
    assert await put(http, ARCHIVE, offset=0) == 201
    async with world.client(auth=tagged(world)) as other:
        for configure, read, words in (
            ("^log$", "", "read access"), ("", "^log$", "configure access"),
        ):  # fmt: skip
            world.users.set_permissions("someone", "/", configure, ".*", read)
            assert len(await archives(other)) == bool(read)
            answer = await other.put("/api" + ARCHIVE, json={"offset": 0})
            assert words in refused(answer, 403)
            refused(await other.delete("/api" + ARCHIVE), 403)
        world.users.set_permissions("someone", "/", "^log$", "", "^log$")
        assert await put(other, ARCHIVE, offset=0) == 204
