"""A change is answered when it outlives the process, and refused when the disk does not take it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from httpx import AsyncClient

from tests.app.conftest import FakeHub, World
from tests.support.manual_store import ManualStore
from tests.support.users import guest_users
from warrenmq.app.access.authentication import Authenticator
from warrenmq.app.context import Context
from warrenmq.core.broker import Broker
from warrenmq.core.definitions.user_writer import UserWriter
from warrenmq.hub.engine.embedded import EmbeddedEngine

from .support import refused

POLICY = {"pattern": "", "definition": {"max-length": 2}}
STEPS = 300
"""Of the loop: many more than a request takes that waits for nothing."""
PATTERNS = {"configure": "", "write": "", "read": "", "exchange": "x"}

CHANGES: list[tuple[str, str, Any, int]] = [
    ("PUT", "/vhosts/new", {}, 201),
    ("DELETE", "/vhosts/old", None, 204),
    ("POST", "/vhosts/old/deletion/protection", None, 204),
    ("PUT", "/users/new", {"tags": ""}, 201),
    ("DELETE", "/users/tony", None, 204),
    ("POST", "/users/bulk-delete", {"users": ["tony"]}, 204),
    ("PUT", "/permissions/%2F/guest", PATTERNS, 204),
    ("DELETE", "/permissions/%2F/guest", None, 204),
    ("PUT", "/topic-permissions/%2F/guest", PATTERNS, 201),
    ("DELETE", "/topic-permissions/old/guest", None, 204),
    ("PUT", "/policies/%2F/p", POLICY, 201),
    ("DELETE", "/policies/old/p", None, 204),
    ("PUT", "/operator-policies/%2F/p", POLICY, 201),
    ("PUT", "/vhost-limits/%2F/max-queues", {"value": 1}, 201),
    ("DELETE", "/vhost-limits/%2F/max-queues", None, 204),
    ("PUT", "/user-limits/guest/max-channels", {"value": 1}, 201),
    ("DELETE", "/user-limits/guest/max-channels", None, 204),
]


@pytest.fixture
def store() -> ManualStore:
    return ManualStore()


@pytest.fixture
async def late(store: ManualStore) -> AsyncIterator[AsyncClient]:
    """On a disk that has to be told."""
    broker = Broker(guest_users(), store=store)
    broker.users.storage = UserWriter(broker.set_aside, broker.vhosts)
    old = broker.add_vhost("old")
    broker.users.add_hashed("tony", "")
    broker.users.set_permissions("guest", "old", "", "", "")
    broker.users.set_topic_permission("guest", "old", "x", "", "")
    engine, hub, authenticator = EmbeddedEngine(broker), FakeHub(), Authenticator(broker.users)
    anything: Any = hub
    context = Context(engine, anything, authenticator, broker.vhosts, "", "", broker)
    world = World(broker, engine, hub, broker.users, context)
    async with world.client() as client:
        await client.get("/api/whoami")
        answer = asyncio.create_task(client.put("/api/policies/old/p", json=POLICY))
        while not old.policies.records():
            await asyncio.sleep(0)
        store.commit()
        await answer
        yield client
    authenticator.close()


async def asked(
    http: AsyncClient, change: tuple[str, str, Any, int]
) -> asyncio.Task[httpx.Response]:
    """The request, when there is nothing left for the loop to do about it."""
    method, path, body, _ = change
    content = {} if body is None else {"json": body}
    answer = asyncio.create_task(http.request(method, "/api" + path, **content))
    for _ in range(STEPS):
        await asyncio.sleep(0)
    assert not answer.done(), answer.result().text
    return answer


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change[0]} {change[1]}")
async def test_an_answer_waits_for_the_disk(
    late: AsyncClient, store: ManualStore, change: tuple[str, str, Any, int]
) -> None:
    answer = await asked(late, change)
    store.commit()
    assert (await answer).status_code == change[3]


async def test_a_full_disk_is_reported(late: AsyncClient, store: ManualStore) -> None:
    answer = await asked(late, CHANGES[0])
    store.refuse()
    assert "the disk is full" in refused(await answer, 507)
