"""What the tests of the hub share."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.http import Answer as Answered
from tests.support.http import Callback, Request, stop_accepting
from tests.support.settings import hub_settings
from warrenmq.core.broker import Broker
from warrenmq.core.clock import Clock
from warrenmq.core.message.model import Properties, Table
from warrenmq.core.queue.queue import Queue
from warrenmq.hub.attempts.attempt import Attempt, AttemptFilter, StoredAttempt
from warrenmq.hub.engine.port import Delivery, Engine, PublishOutcome
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.owner_rights import SubscriberRights
from warrenmq.hub.processes.starter import ProcessStarter
from warrenmq.hub.requests import Resource, SubscribeRequest
from warrenmq.hub.sender.port import Answer, Sender
from warrenmq.hub.service import KEY_NAME, Hub
from warrenmq.hub.subscriptions.active import ActiveSubscription
from warrenmq.hub.subscriptions.subscription import Subscription, identity_of_request
from warrenmq.hub.topics.names import CONTENT, VHOST

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
BASE_URL = "http://127.0.0.1:15672"
NEWS = Resource("/", "x", "news")
INBOX = Resource("/", "q", "in")


def request(
    source: Resource, callback: str | None, topic: str | None = "#", **given: Any
) -> SubscribeRequest:
    return SubscribeRequest(
        source=source, callback=callback, topic=topic, user="guest", base_url=BASE_URL, **given
    )


def subscription(**changed: Any) -> Subscription:
    """To `news`, for a minute."""
    given: dict[str, Any] = {
        "id": "1", "source": NEWS, "topic": "#", "callback": "http://a.b/", "lease_seconds": 60,
        "expires_at": 0.0, "owner": "guest",
    }  # fmt: skip
    return Subscription(**{**given, **changed})


def text(body: str) -> Answered:
    """Content of a topic."""
    return Answered(headers={"Content-Type": "text/plain"}, body=body.encode())


def topic_request(publisher: Callback, callback: Callback, **given: Any) -> SubscribeRequest:
    """To somebody else's topic, without credentials."""
    source, url = Resource(VHOST, "x", CONTENT), publisher.url
    return replace(request(source, callback.url, url, topic_url=url, **given), user="")


def subscriptions_of(hub: Hub) -> list[Subscription]:
    return [active.subscription for active in hub.subscription_store.all()]


class House:
    """An engine that outlives its hubs, so that restarts can be tested."""

    def __init__(
        self,
        engine: Engine,
        broker: Broker,
        directory: Path,
        clock: Clock | None = None,
        database_url: str | None = None,
    ) -> None:
        self.engine = engine
        self.broker = broker
        self.directory = directory
        self.database_url = database_url
        self.clock = clock
        self.rights: SubscriberRights | None = None
        self.sealer = Sealer(directory / KEY_NAME)
        self.starter = ProcessStarter()
        self.hub = self.make_hub()

    def make_hub(self, **changed: Any) -> Hub:
        given = {"allow_loopback": True, "base_urls": (BASE_URL,), "source_poll_s": 0.05}
        settings = hub_settings(**{**given, **changed})
        return Hub(
            self.engine,
            settings,
            self.directory,
            starter=self.starter,
            database_url=self.database_url,
            clock=self.clock,
            rights=self.rights,
        )

    async def start(self) -> None:
        await self.hub.start()
        self.hub.reachable()

    async def stop(self) -> None:
        await self.hub.stop()
        self.starter.close()

    async def restart(self, **changed: Any) -> None:
        await self.hub.stop()
        self.hub = self.make_hub(**changed)
        await self.start()

    async def subscribe(
        self, source: Resource, callback: Callback | str, topic: str = "#", **given: Any
    ) -> ActiveSubscription:
        url = callback if isinstance(callback, str) else callback.url
        requested = request(source, url, topic, **given)
        await self.hub.subscriptions.subscribe(requested)
        active = self.hub.subscription_store.find(identity_of_request(requested))
        assert active is not None
        return active

    async def publish(self, key: str, body: bytes, **properties: Any) -> PublishOutcome:
        return await self.engine.publish(None, "/", "news", key, Properties(**properties), body)

    async def post(self, queue: str, key: str, body: bytes, headers: Table | None = None) -> None:
        properties = Properties(headers=headers)
        await self.engine.publish(None, "/", "", key, properties, body, queue=queue)

    def queue(self, name: str) -> Queue:
        return self.broker.vhosts["/"].queues[name]

    def unacked(self, queue: str) -> int:
        return self.queue(queue).unacked_count

    def prefetch(self, queue: str) -> int | None:
        """Of its one consumer, None while it has none."""
        ring = self.queue(queue).ring
        return None if ring is None else next((one.prefetch for one in ring.members), None)

    async def depth(self, queue: str) -> int | None:
        """Messages ready in a queue, None without the queue."""
        info = await self.engine.queue("/", queue)
        return None if info is None else info.messages_ready

    async def take(self, queue: str, count: int) -> list[Delivery]:
        """Consumes and acks that many messages of a queue."""
        taken: list[Delivery] = []

        def on_delivery(delivery: Delivery) -> None:
            delivery.ack()
            taken.append(delivery)

        async def on_cancel() -> None:
            raise AssertionError(f"queue '{queue}' went away")

        consumption = await self.engine.consume(
            "/", queue, prefetch=1, on_delivery=on_delivery, on_cancel=on_cancel
        )
        await until(lambda: len(taken) >= count, f"message {count} in queue '{queue}'")
        await consumption.cancel()
        return taken


async def deliveries(callback: Callback, count: int) -> list[Request]:
    await until(lambda: len(callback.deliveries) >= count, f"delivery {count}")
    return callback.deliveries


async def attempts_of(house: House, count: int) -> list[Attempt]:
    """All attempts that are stored, the oldest first, when there are so many."""
    found: list[StoredAttempt] = []

    async def are_stored() -> bool:
        found[:] = await house.hub.attempts.find(AttemptFilter())
        return len(found) >= count

    await until(are_stored, f"attempt {count} that is stored")
    return [kept.attempt for kept in reversed(found)]


async def until(
    condition: Callable[[], bool | Awaitable[bool]], what: str, timeout_s: float = 20.0
) -> None:
    """Waits, without holding up the loop, until the condition is true; fails at the timeout."""
    deadline = asyncio.get_running_loop().time() + timeout_s
    while not await _value(condition()):
        assert asyncio.get_running_loop().time() < deadline, f"no {what} in {timeout_s} s"
        await asyncio.sleep(0.01)


class Posting:
    """Waits for the answers of a sender."""

    def __init__(self, sender: Sender) -> None:
        self.sender = sender

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        answer: asyncio.Future[Answer | Exception] = asyncio.get_running_loop().create_future()
        self.sender.post(url, headers, body, answer.set_result)
        assert not answer.done()
        got = await answer
        if isinstance(got, Exception):
            raise got
        return got


@contextlib.asynccontextmanager
async def serving(
    handler: Handler, port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """A raw server on loopback; gives its URL."""
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await handler(reader, writer)
        except (asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", port, ssl=tls)
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}/cb"
    finally:
        await stop_accepting(*server.sockets)
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _value(result: bool | Awaitable[bool]) -> bool:
    return result if isinstance(result, bool) else await result
