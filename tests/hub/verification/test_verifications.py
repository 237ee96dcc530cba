"""What was answered with 202 is verified, whatever happens in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.http import Answer, Callback
from warrenmq.core.clock import SystemClock
from warrenmq.core.errors import WarrenError
from warrenmq.hub.errors import StorageFailed, TooManyPending, VerificationFailed
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.requests import Mode, SubscribeRequest
from warrenmq.hub.settings import HubSettings
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.tasks import Tasks
from warrenmq.hub.verification import verifications
from warrenmq.hub.verification.repository import PendingVerification, VerificationRepository
from warrenmq.hub.verification.verifications import Verifications

from ..support import NEWS, House, request, until


class Desk:
    """Verifications whose work the test does; requests wait while `gate` is closed."""

    def __init__(self, directory: Path, sealer: Sealer) -> None:
        self.storage = Storage(directory, None, sealer)
        self.tasks = Tasks()
        self.gate = asyncio.Event()
        self.done: list[tuple[Mode, str]] = []
        self.errors: list[WarrenError] = []
        settings = HubSettings(
            max_pending_verifications=4,
            max_pending_anonymous=3,
            max_pending_per_domain=2,
            max_pending_per_client=2,
        )
        self.verifications = Verifications(
            self.storage, settings, SystemClock(), self.tasks, self._carry_out
        )

    async def accept(self, callback: str, mode: Mode = "subscribe", client: str = "") -> None:
        await self.verifications.accept(mode, request(NEWS, callback, client=client))

    async def pending(self) -> list[PendingVerification]:
        return await VerificationRepository(
            await self.storage.database(), self.storage.sealer
        ).all()

    async def settle(self) -> None:
        async def is_settled() -> bool:
            return await self.pending() == []

        await until(is_settled, "end of all verifications")

    async def _carry_out(self, mode: Mode, request: SubscribeRequest) -> None:
        await self.gate.wait()
        self.done.append((mode, str(request.callback)))
        if self.errors:
            raise self.errors.pop(0)


@pytest.fixture
async def desk(tmp_path: Path, sealer: Sealer) -> AsyncIterator[Desk]:
    desk = Desk(tmp_path, sealer)
    yield desk
    await desk.tasks.stop()
    await desk.storage.close()


async def test_what_is_accepted_is_stored_until_it_is_done(desk: Desk) -> None:
    await desk.accept("http://a.b/")
    [pending] = await desk.pending()
    assert (pending.mode, pending.request.callback) == ("subscribe", "http://a.b/")
    assert desk.verifications.concern(pending.request) and desk.done == []
    desk.gate.set()
    await desk.settle()
    assert desk.done == [("subscribe", "http://a.b/")]
    await until(lambda: not desk.verifications.concern(pending.request), "forgetting")


async def test_a_failed_verification_is_over_too(desk: Desk) -> None:
    desk.errors = [VerificationFailed("no", field="hub.callback")]
    desk.gate.set()
    await desk.accept("http://a.b/")
    await desk.settle()
    assert len(desk.done) == 1


async def test_a_failed_database_is_tried_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifications, "AGAIN_S", (0.01, 0.02))
    desk.errors = [StorageFailed("down", field="database") for _ in range(3)]
    desk.gate.set()
    await desk.accept("http://a.b/")
    await desk.settle()
    assert len(desk.done) == 4


async def test_requests_about_one_subscription_keep_their_order(desk: Desk) -> None:
    modes: list[Mode] = ["subscribe", "unsubscribe"]
    for mode in modes:
        await desk.accept("http://a.b/%7E", mode)
    desk.gate.set()
    await desk.settle()
    assert [mode for mode, _ in desk.done] == modes


async def test_they_are_bounded_for_each_domain_and_client_and_in_all(desk: Desk) -> None:
    async def refused(callback: str, client: str = "") -> str | None:
        with pytest.raises(TooManyPending, match="too many") as caught:
            await desk.accept(callback, client=client)
        assert caught.value.retry_after_s
        return caught.value.limit

    await desk.accept("http://www.a.example/", client="192.0.2.1")
    await desk.accept("http://ftp.A.example:81/", client="192.0.2.2")
    assert await refused("http://new.a.example/") == "2 for one domain"
    await desk.accept("http://c.example/", client="192.0.2.1")
    assert await refused("http://d.example/", "192.0.2.1") == "2 for one client"
    assert await refused("http://d.example/", "192.0.2.3") == "3 without credentials"
    await desk.accept("http://d.example/")
    assert await refused("http://e.example/") == "4 in all"
    assert len(await desk.pending()) == 4
    desk.gate.set()
    await desk.settle()
    callbacks = [callback for _, callback in desk.done]
    await until(
        lambda: not any(desk.verifications.concern(request(NEWS, one)) for one in callbacks), "room"
    )
    for number in range(2):
        await desk.accept(f"http://a.example/{number}", client="192.0.2.1")
    await desk.settle()


async def test_one_that_could_not_be_stored_takes_no_room(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(rows: VerificationRepository, added: object, over: object) -> None:
        raise StorageFailed("down", field="database")

    monkeypatch.setattr(VerificationRepository, "change", fail)
    for _ in range(5):
        with pytest.raises(StorageFailed):
            await desk.accept("http://a.b/")
    assert not desk.verifications.concern(request(NEWS, "http://a.b/"))


async def test_a_stop_in_between_forgets_nothing(house: House, callback: Callback) -> None:
    callback.refusal = Answer(hang=True)
    asked = request(NEWS, callback.url, "eu.#", verify=("async",), secret="s3cret")
    await house.hub.subscriptions.subscribe(asked)
    await until(lambda: len(callback.verifications) == 1, "question")
    await house.hub.stop()
    callback.refusal = None
    house.hub = house.make_hub()
    await house.hub.start()
    await until(lambda: len(house.hub.subscriptions.all()) == 1, "subscription")
    [subscription] = house.hub.subscriptions.all()
    assert (subscription.topic, subscription.keys.secret) == ("eu.#", "s3cret")
    assert len(callback.verifications) == 2
    await house.restart()
    assert len(house.hub.subscriptions.all()) == 1
    assert len(callback.verifications) == 2
