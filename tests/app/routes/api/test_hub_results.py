"""/api/hub/pipeline/results: what jobs publish is kept by the hour, once, and bounded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.routes.api.support import get, put, refused
from tests.hub.support import until
from warrenmq.core.clock import ManualClock
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.owner_rights import AllowAll
from warrenmq.hub.results.results import Results
from warrenmq.hub.runs.runs import Runs
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.tasks import Tasks

RESULTS = "/hub/pipeline/results"
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
NOON_S = int(NOON.timestamp())
RANGE = "from=2026-11-20T00:00:00Z&until=2026-11-21T00:00:00Z"


@pytest.fixture(autouse=True)
async def _parts(world: World, tmp_path: Path) -> AsyncIterator[None]:
    storage = Storage(tmp_path, None, Sealer(tmp_path / "key"))
    hub: Any = world.hub
    hub.runs = Runs(storage, ManualClock(), Tasks(), AllowAll())
    hub.results = Results(storage, world.engine, kept_rows=3)
    yield
    await hub.results.stop()
    await storage.close()


def row(minute: int, offset: int, messages: int, key: str = "a", **more: Any) -> dict[str, Any]:
    at = (NOON + timedelta(minutes=minute)).isoformat(timespec="milliseconds")
    counts = {"messages": messages, "bytes": 10 * messages, "late": 0, "age_p99_ms": None}
    return {"minute": at, "exchange": "news", "routing_key": key, "offset": offset} | counts | more


async def publish(http: AsyncClient, job: str, *rows: Any) -> None:
    for one in rows:
        answer = await http.post(f"/endpoint/x/hub.pipeline?hub.topic={job}", json=one)
        assert answer.status_code == 202, answer.text


async def begin(http: AsyncClient, world: World, job: str = "rollup") -> None:
    await world.exchange("hub.pipeline", "topic")
    await put(http, f"/hub/pipeline/runs/{job}/one", state="running")


async def lines(http: AsyncClient, world: World, query: str, value: str) -> dict[str, Any]:
    while world.broker.turn():
        pass
    found = await get(http, f"{RESULTS}?{query}")
    return {one["name"]: one["values"][value] for one in found["groups"]}


async def test_minutes_add_up_to_hours_each_by_its_newest_row(
    http: AsyncClient, world: World
) -> None:
    assert (await get(http, f"{RESULTS}?job=rollup"))["groups"] == []
    await begin(http, world)
    await publish(
        http, "rollup", row(1, 5, 5), row(0, 9, 2, age_p99_ms=70), row(1, 12, 8),
        row(1, 5, 5), row(61, 20, 1), row(2, 21, 4, "b"), "no result", {"minute": "x"},
    )  # fmt: skip
    by_key = f"job=rollup&by=routing_key&{RANGE}"

    async def has_all() -> bool:
        return await lines(http, world, by_key, "messages") == {"a": [10, 1], "b": [4, None]}

    await until(has_all, "sums")
    assert await lines(http, world, f"{by_key}&top=1", "age_p99_ms") == {"a": [70, 0]}
    found = await get(http, f"{RESULTS}?job=rollup&{RANGE}")
    assert (found["by"], found["step"]) == ("exchange", "hour")
    assert found["times"] == [NOON_S, NOON_S + 3600]
    assert found["groups"][0]["values"]["bytes"] == [140, 10]
    assert await lines(http, world, f"job=rollup&step=day&{RANGE}", "messages") == {"news": [15]}
    assert await lines(http, world, "job=rollup&until=2026-11-20T11:00:00Z", "messages") == {}


async def test_the_newest_hours_are_kept(http: AsyncClient, world: World) -> None:
    await begin(http, world)
    await publish(http, "rollup", *(row(60 * hour, hour, hour + 1) for hour in range(5)))

    async def has_the_last() -> bool:
        return await lines(http, world, f"job=rollup&{RANGE}", "messages") == {"news": [3, 4, 5]}

    await until(has_the_last, "end")


async def test_terms_and_deliveries(http: AsyncClient, world: World) -> None:
    await begin(http, world, "trending")
    term = {"until": NOON.isoformat(), "term": "bridge", "documents": 9, "expected": 1, "score": 4}
    health = {"minute": NOON.isoformat(), "subscription": None, "topic": "t", "offset": 1,
              "attempts": 4, "delivered": 3, "retried": 1, "dead": 0, "gone": 0,
              "latency_p99_ms": 12.5}  # fmt: skip
    await publish(http, "trending", term)
    await publish(http, "delivery-health", health)

    async def has_both() -> bool:
        found = await lines(http, world, f"job=delivery-health&{RANGE}", "latency_p99_ms")
        return found == {"": [12.5]}

    await until(has_both, "rows")
    assert await lines(http, world, f"job=trending&{RANGE}", "score") == {"bridge": [4]}


async def test_bad_queries_are_refused_with_the_reason(http: AsyncClient, world: World) -> None:
    for query, reason in {
        "": "'job' is missing", "job=archive": "one of rollup, delivery-health, trending",
        "job=rollup&by=topic": "one of exchange, routing_key", "job=rollup&from=now": "such as",
        "job=rollup&top=51": "from 1 to 50", "job=rollup&step=week": "one of hour, day",
    }.items():  # fmt: skip
        assert reason in refused(await http.get(f"/api{RESULTS}?{query}"), 400)
