"""What was answered with 202 is verified, whatever happens in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.settings import hub_settings
from warrenmq.core.clock import SystemClock
from warrenmq.core.errors import WarrenError
from warrenmq.hub.errors import StorageFailed, TooManyPending, VerificationFailed
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.requests import Mode, SubscribeRequest
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.tasks import Tasks
from warrenmq.hub.verification import verifications
from warrenmq.hub.verification.repository import PendingVerification, VerificationRepository
from warrenmq.hub.verification.verifications import Verifications

from ..support import NEWS, request, until


class Desk:
    """Verifications whose work the test does; requests wait while `gate` is closed."""

    def __init__(self, directory: Path, sealer: Sealer) -> None:
        self.storage = Storage(directory, None, sealer)
        self.tasks = Tasks()
        self.gate = asyncio.Event()
        self.done: list[tuple[Mode, str]] = []
        self.errors: list[WarrenError] = []
        settings = hub_settings(
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


async def test_a_request_is_stored_until_it_is_done(desk: Desk) -> None:
    await desk.accept("http://a.b/")
    [pending] = await desk.pending()
    assert (pending.mode, pending.request.callback) == ("subscribe", "http://a.b/")
    assert desk.verifications.concern(pending.request) and desk.done == []
    desk.gate.set()
    await desk.settle()
    assert desk.done == [("subscribe", "http://a.b/")]
    await until(lambda: not desk.verifications.concern(pending.request), "forgetting")


async def test_only_failures_of_the_database_are_repeated(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifications, "RETRY_S", (0.01, 0.02))
    desk.errors = [StorageFailed("down", field="database") for _ in range(3)]
    desk.errors.append(VerificationFailed("no", field="hub.callback"))
    desk.gate.set()
    await desk.accept("http://a.b/")
    await desk.settle()
    assert len(desk.done) == 4


async def test_requests_for_a_subscription_keep_their_order(desk: Desk) -> None:
    modes: list[Mode] = ["subscribe", "unsubscribe"]
    for mode in modes:
        await desk.accept("http://a.b/%7E", mode)
    desk.gate.set()
    await desk.settle()
    assert [mode for mode, _ in desk.done] == modes


async def test_pending_requests_are_limited(desk: Desk) -> None:
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


async def test_a_request_that_was_not_stored_does_not_count(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(rows: VerificationRepository, added: object, over: object) -> None:
        raise StorageFailed("down", field="database")

    monkeypatch.setattr(VerificationRepository, "change", fail)
    for _ in range(5):
        with pytest.raises(StorageFailed):
            await desk.accept("http://a.b/")
    assert not desk.verifications.concern(request(NEWS, "http://a.b/"))
