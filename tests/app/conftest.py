"""The real ASGI application on the real broker, with httpx as its client and a hub that records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from httpx import AsyncClient

from tests.app import openapi_check
from tests.support.settings import hub_settings
from tests.support.users import guest_users
from warrenmq.app.access.authentication import Authenticator
from warrenmq.app.asgi import Application
from warrenmq.app.context import Context
from warrenmq.app.node import node_name
from warrenmq.app.routes.publish import HttpPublisher
from warrenmq.core.auth import Users, hashes
from warrenmq.core.broker import Broker
from warrenmq.hub.engine.embedded import EmbeddedEngine
from warrenmq.hub.engine.port import BindingSpec, Delivery, ExchangeSpec, Message, QueueSpec
from warrenmq.hub.errors import NotSubscribed, TokenRefused
from warrenmq.hub.requests import Resource, SubscribeRequest, SubscribeResult
from warrenmq.hub.service import Hub
from warrenmq.hub.settings import HubSettings

GUEST = ("guest", "guest")
LIMIT = 16 * 1024


@dataclass
class FakeHub:
    """Records what its parts are asked; a token is `use:letter:name`."""

    asked: list[tuple[str, SubscribeRequest]] = field(default_factory=list)
    removed: list[tuple[Resource, str, str]] = field(default_factory=list)
    verified: bool = True
    bound: Resource | None = None
    error: Exception | None = None
    settings: HubSettings = field(default_factory=hub_settings)
    forgotten: list[str] = field(default_factory=list)
    recorded: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def audit(self) -> FakeHub:
        return self

    def record(self, *what: str, **more: Any) -> None:
        self.recorded.append(what)

    @property
    def subscriptions(self) -> FakeHub:
        return self

    @property
    def shortcuts(self) -> FakeHub:
        return self

    async def subscribe(self, request: SubscribeRequest) -> SubscribeResult:
        return self._answer("subscribe", request)

    async def unsubscribe(self, request: SubscribeRequest) -> SubscribeResult:
        return self._answer("unsubscribe", request)

    def _answer(self, mode: str, request: SubscribeRequest) -> SubscribeResult:
        if self.error is not None:
            raise self.error
        self.asked.append((mode, request))
        return SubscribeResult(self.verified, 600)

    def forget_owner(self, owner: str) -> None:
        self.forgotten.append(owner)

    async def remove(self, source: Resource, topic: str, callback: str) -> None:
        if topic == "unknown":
            raise NotSubscribed("no such subscription", field="hub.topic", value=topic)
        self.removed.append((source, topic, callback))

    def generate_token(self, resource: Resource, intended_use: str | None) -> str:
        if intended_use not in ("subscribe", "unsubscribe"):
            raise TokenRefused("is no use of a token", field="hub.intended_use")
        return f"{intended_use}:{resource.kind}:{resource.name}"

    def check_token(self, token: str | None, resource: Resource, use: str) -> None:
        if token != f"{use}:{resource.kind}:{resource.name}":
            raise TokenRefused("is not for this", field="hub.verify_token")

    def sink(self, request: SubscribeRequest, use: str) -> Resource | None:
        return self.bound


@dataclass
class World:
    """Everything a test may want to look at or to change."""

    broker: Broker
    engine: EmbeddedEngine
    hub: FakeHub
    users: Users
    context: Context
    ready: bool = True

    async def exchange(self, name: str, kind: str = "topic", vhost: str = "/") -> None:
        await self.engine.declare_exchange(vhost, ExchangeSpec(name, kind))

    async def queue(self, name: str, vhost: str = "/", **arguments: Any) -> None:
        table = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
        await self.engine.declare_queue(vhost, QueueSpec(name, arguments=table))

    async def bind(self, source: str, queue: str, key: str = "#") -> None:
        await self.engine.bind("/", BindingSpec(source, queue, routing_key=key))

    async def messages(self, queue: str, vhost: str = "/") -> list[Message]:
        """Takes what waits there."""
        found: list[Delivery] = []

        async def gone() -> None:
            raise AssertionError("the queue went away")

        consumption = await self.engine.consume(
            vhost, queue, prefetch=0, on_delivery=found.append, on_cancel=gone
        )
        while self.broker.turn():
            pass
        await consumption.cancel()
        messages = [delivery.message for delivery in found]
        for delivery in found:
            delivery.ack()
        return messages

    async def message(self, queue: str, vhost: str = "/") -> Message:
        (message,) = await self.messages(queue, vhost)
        return message

    def client(self, **options: Any) -> AsyncClient:
        """`peer`, `auth`, and the settings of the application."""
        peer, credentials = options.pop("peer", "127.0.0.1"), options.pop("auth", GUEST)
        transport = httpx.ASGITransport(
            self.application(**options), raise_app_exceptions=True, client=(peer, 1234)
        )
        return AsyncClient(
            transport=transport,
            base_url="http://hub",
            auth=credentials,
            event_hooks={"response": [openapi_check.check]},
        )

    def application(
        self,
        base_path: str = "",
        public_url: str = "",
        set_correlation_id: str = "",
        set_message_id: str = "",
    ) -> Application:
        publisher = HttpPublisher(
            self.engine,
            self.context.authenticator,
            self.broker.vhosts,
            self.broker.alarms,
            max_body_bytes=LIMIT,
            correlation_id_header=set_correlation_id,
            message_id_header=set_message_id,
        )
        context = replace(self.context, public_url=public_url)
        return Application(context, publisher, base_path=base_path, is_ready=lambda: self.ready)


@pytest.fixture(autouse=True)
def _cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashes, "ARGON2_MEMORY_KIB", 8)
    monkeypatch.setattr(hashes, "ARGON2_TIME_COST", 1)


def run_slices(broker: Broker) -> None:
    """Runs sliced work in the event loop; tests run the turns that dispatch messages."""

    def run() -> None:
        if broker.slices.run():
            run_soon()

    def run_soon() -> None:
        if broker.slices.busy:
            asyncio.get_running_loop().call_soon(run)

    broker.on_work = run_soon


@pytest.fixture
def world() -> Iterator[World]:
    users = guest_users()
    users.add("tony", "secret")
    users.set_permissions("tony", "/", "^tony", "^tony", "^tony")
    users.set_permissions("guest", "other/one", ".*", ".*", ".*")
    broker = Broker(users, node_name=node_name())
    hub, authenticator = FakeHub(), Authenticator(users)
    broker.add_vhost("other/one")
    broker.add_vhost("closed")
    run_slices(broker)
    engine = EmbeddedEngine(broker)
    context = Context(
        engine, cast(Hub, hub), authenticator, broker.vhosts, "", "http://localhost:1", broker
    )
    yield World(broker, engine, hub, users, context)
    authenticator.close()


@pytest.fixture
async def hub(world: World, tmp_path: Path) -> AsyncIterator[Hub]:
    """A real one in place of the one that records; callbacks may be on this machine."""
    settings = hub_settings(allow_loopback=True, base_urls=("http://hub",))
    hub = Hub(world.engine, settings, tmp_path)
    world.context = replace(world.context, hub=hub)
    await hub.start()
    yield hub
    await hub.stop()


@pytest.fixture
async def http(world: World) -> AsyncIterator[AsyncClient]:
    async with world.client() as client:
        yield client
