"""The context of a check: the hub, and topics and callbacks of its own."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress

from .callback import Callback, answer_410, echo
from .client import HubClient
from .exchange import Reply, Request
from .expect import check_delivery, check_verification
from .options import Options
from .results import Failed, NoService
from .servers import Servers
from .topic import Topic
from .transcript import Transcript

HTML = "text/html; charset=utf-8"


class CheckContext:
    """Helpers of a check; they assert the rules for every subscription, verification and
    delivery."""

    def __init__(self, servers: Servers, hub: HubClient, options: Options) -> None:
        self.options = options
        self.trace = Transcript()
        self._servers = servers
        self._hub = hub
        self._callbacks: list[Callback] = []
        self._topics: list[Topic] = []

    def topic(
        self, content_type: str = HTML, body: bytes | None = None, suffix: str = "/document"
    ) -> Topic:
        topic = self._servers.topic(self.trace, content_type, body or fresh(), suffix)
        self._topics.append(topic)
        return topic

    def callback(self, suffix: str = "") -> Callback:
        callback = self._servers.callback(self.trace, suffix)
        self._callbacks.append(callback)
        return callback

    async def post(self, *fields: tuple[str, str]) -> Reply:
        return await self._hub.post(fields, self.trace)

    async def ask(
        self, mode: str, callback: Callback, topic_url: str, *extra: tuple[str, str]
    ) -> Reply:
        if mode == "subscribe":
            callback.known.update(topic.body for topic in self._topics)
        fields = (("hub.mode", mode), ("hub.topic", topic_url), ("hub.callback", callback.url))
        return await self.post(*fields, *extra)

    async def subscribe(self, callback: Callback, topic: Topic, *extra: tuple[str, str]) -> Request:
        """Subscribes; returns the verification once the subscription is confirmed."""
        return await self._change("subscribe", callback, topic, extra)

    async def unsubscribe(
        self, callback: Callback, topic: Topic, *extra: tuple[str, str]
    ) -> Request:
        return await self._change("unsubscribe", callback, topic, extra)

    async def _change(
        self, mode: str, callback: Callback, topic: Topic, extra: tuple[tuple[str, str], ...]
    ) -> Request:
        before = len(callback.verifications)
        self.require_accepted(await self.ask(mode, callback, topic.url, *extra), mode)
        verification = await self.verification(callback, mode, before + 1)
        check_verification(verification, mode, topic.url, callback)
        await self.settle()
        return verification

    async def settle(self) -> None:
        """Waits until the hub has stored the callback's answer."""
        await asyncio.sleep(self.options.settle_s)

    def require_accepted(self, reply: Reply, mode: str) -> None:
        if not reply.is_accepted:
            raise NoService(f"the hub answered a correct {mode} request with {reply}")

    async def verification(self, callback: Callback, mode: str, count: int) -> Request:
        """Returns the verification of that number, counted from 1, once it has come."""
        came = await callback.wait(
            lambda: len(callback.verifications) >= count or bool(callback.denials),
            self.options.patience_s,
        )
        if len(callback.verifications) >= count:
            return callback.verifications[count - 1]
        if came:
            reason = callback.denials[-1].last("hub.reason") or "no reason given"
            raise NoService(f"the hub denied the {mode} request: {reason}")
        raise NoService(
            f"the hub did not ask {callback.url} to verify the {mode} request within "
            f"{self.options.patience_s:g} s; can it reach that address? (see --public-url)"
        )

    async def publish(self, topic: Topic, body: bytes | None = None) -> None:
        """Changes the topic and pings the hub."""
        topic.body = body or fresh()
        reply = await self.ping(("hub.url", topic.url), ("hub.topic", topic.url))
        if not reply.is_accepted:
            raise NoService(f"the hub answered a publisher's ping with {reply}")

    async def ping(self, *fields: tuple[str, str]) -> Reply:
        return await self.post(("hub.mode", "publish"), *fields)

    async def request_to(self, callback: Callback, count: int) -> Request:
        """Returns the delivery of that number, counted from 1, once it has come, without checking
        it."""
        if await callback.delivered(count, self.options.patience_s):
            return callback.deliveries[count - 1]
        raise NoService(
            f"delivery {count} was not received by {callback.url} within "
            f"{self.options.patience_s:g} s after the ping"
        )

    async def delivery(
        self, callback: Callback, topic: Topic, count: int = 1, secret: str | None = None
    ) -> Request:
        """Returns the delivery of that number once it has come; it must be the current content of
        the topic."""
        request = await self.request_to(callback, count)
        check_delivery(request, callback, topic, self.options.hub, secret)
        return request

    async def nothing_more(self, callback: Callback, count: int, why: str) -> None:
        """Raises `Failed` if more than `count` deliveries come within the grace period."""
        if await callback.delivered(count + 1, self.options.grace_s):
            raise Failed(why)

    async def witness(self, topic: Topic) -> Callback:
        """Subscribes another callback, whose delivery shows that the hub has distributed an
        update."""
        callback = self.callback()
        await self.subscribe(callback, topic)
        return callback

    async def unsubscribe_all(self) -> None:
        """Ends the remaining subscriptions.

        Deliveries of one that the hub does not end within the grace period are answered with 410;
        it ends with its lease.
        """
        for callback in self._callbacks:
            callback.confirm, callback.receive = echo, answer_410
            for topic_url in tuple(callback.subscribed):
                with suppress(Failed):  # no response; it is in the transcript
                    await self.ask("unsubscribe", callback, topic_url)
        grace_s = self.options.grace_s
        await asyncio.gather(*(callback.released(grace_s) for callback in self._callbacks))


def fresh() -> bytes:
    """Returns a new document."""
    return f"<!doctype html><title>{secrets.token_hex(8)}</title><p>Gr\u00fc\u00dfe</p>".encode()


def new_secret(size: int = 20) -> str:
    return secrets.token_hex(size)[:size]
