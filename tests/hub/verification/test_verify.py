"""Verification by challenge (WebSub 5.3), against callbacks that behave badly too."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.hub.support import until
from tests.support.dns import Name, dns
from tests.support.http import Answer, Callback
from tests.support.settings import hub_settings
from warrenmq.hub.errors import VerificationFailed
from warrenmq.hub.guard import domains
from warrenmq.hub.guard.guard import Guard
from warrenmq.hub.subscriptions.intent import Intent
from warrenmq.hub.subscriptions.options import DEFAULTS
from warrenmq.hub.verification.verify import SLOTS_PER_TARGET, Verifier, question


def intent(callback: str, **given: Any) -> Intent:
    values: dict[str, Any] = {
        "topic": "eu.#", "shown_topic": "eu.#", "lease_seconds": 600, "is_verified": True,
        "is_sync": True, "verify_token": None, "secret": None, "basic_auth": None,
        "options": DEFAULTS,
    }  # fmt: skip
    return Intent(callback=callback, **{**values, **given})


@contextlib.asynccontextmanager
async def verifying(**given: Any) -> AsyncIterator[Verifier]:
    settings = hub_settings(**{"allow_loopback": True, **given})
    await domains.load()
    guard = Guard(settings)
    verifier = Verifier(settings, guard)
    try:
        yield verifier
    finally:
        await verifier.close()
        await guard.close()


def test_the_parameters_of_a_verification() -> None:
    asked = intent("http://a.b/cb?hub.mode=mine&x=%2F", verify_token="t")
    url = question("subscribe", asked, "c+/")
    assert url.startswith("http://a.b/cb?hub.mode=mine&x=%2F&")
    assert parse_qsl(urlsplit(url).query) == [
        ("hub.mode", "mine"),
        ("x", "/"),
        ("hub.mode", "subscribe"),
        ("hub.topic", "eu.#"),
        ("hub.challenge", "c+/"),
        ("hub.lease_seconds", "600"),
        ("hub.verify_token", "t"),
    ]
    assert "lease" not in question("unsubscribe", asked, "c")


async def test_credentials_and_no_cookies_are_sent_directly(
    callback: Callback, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a proxy of the environment, without the secret, and each with a new challenge."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    long = callback.url + "?token=%41" + "x" * 1_900
    async with verifying() as verifier:
        await verifier.verify("subscribe", intent(callback.url, secret="s3cret"))
        asked = intent(long, shown_topic="y" * 2_000, basic_auth="bWU6eW91")
        await verifier.verify("subscribe", asked)
    first, second = callback.requests
    assert "Authorization" not in first.headers and "s3cret" not in first.raw_path
    assert second.headers["Authorization"] == "Basic bWU6eW91"
    assert second.headers["Accept-Encoding"] == "identity"
    assert second.raw_path.startswith(f"/callback?token=%41{'x' * 1_900}&hub.mode=")
    assert second.query["hub.topic"] == "y" * 2_000
    challenges = [one.query["hub.challenge"] for one in callback.requests]
    assert challenges[0] != challenges[1] and len(challenges[0]) >= 32


async def test_the_lease_counts_from_the_question(
    callback: Callback, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not from the wait for a slot, here an hour by the loop's clock."""
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    async with verifying(verify_concurrency=1) as verifier, AsyncExitStack() as held:
        await held.enter_async_context(verifier.patient_limiter.take(["elsewhere"]))
        take, now_s = verifier.patient_limiter.take, loop.time

        def noted(*given: Any) -> contextlib.AbstractAsyncContextManager[None]:
            asked.set()
            return take(*given)

        monkeypatch.setattr(verifier.patient_limiter, "take", noted)
        asking = verifier.verify("subscribe", intent(callback.url), is_patient=True)
        task = asyncio.create_task(asking)
        await asked.wait()
        monkeypatch.setattr(loop, "time", lambda: now_s() + 3_600)
        await held.aclose()
        took_s = await task
    assert 0 < took_s < 3_600


async def test_patient_requests_wait_for_a_slot_without_limit(callback: Callback) -> None:
    few = verifying(verify_concurrency=1, verify_timeout_s=1.0)
    async with few as verifier, AsyncExitStack() as held:
        await held.enter_async_context(verifier.patient_limiter.take(["elsewhere"]))
        patient = verifier.verify("subscribe", intent(callback.url), is_patient=True)
        task = asyncio.create_task(patient)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(task), 1.5)  # more than it has to answer
        await verifier.verify("subscribe", intent(callback.url))
        assert not task.done()
        await held.aclose()
        await task
    assert len(callback.requests) == 2


@pytest.mark.parametrize(
    "answer",
    [
        Answer(404),
        Answer(500),
        Answer(200),
        Answer(200, body=b"no"),
        Answer(302, headers={"Location": "/callback"}),
        Answer(200, body=b"x" * 1_000_000),
        Answer(200, headers={"Content-Encoding": "gzip"}, body=b"\x1f\x8b\x08\x00"),
        Answer(200, hang=True),
    ],
    ids=["404", "500", "empty", "other", "redirect", "huge", "gzip", "hang"],
)
async def test_any_other_answer_is_a_failure(callback: Callback, answer: Answer) -> None:
    callback.refusal = answer
    async with verifying(verify_timeout_s=0.5) as verifier:
        with pytest.raises(VerificationFailed) as caught:
            await verifier.verify("subscribe", intent(callback.url))
    assert caught.value.status == 400
    assert len(callback.requests) == 1


async def test_an_answer_without_end_is_cut() -> None:
    """Interim responses and heads too; within 20 s it would else be "not in time"."""
    for pouring in (b"HTTP/1.1 100 Continue\r\n\r\n", b"x"):
        async with pouring_server(pouring) as url, verifying(verify_timeout_s=20) as verifier:
            with pytest.raises(VerificationFailed, match="can't be reached"):
                await verifier.verify("subscribe", intent(url))


@contextlib.asynccontextmanager
async def pouring_server(unit: bytes) -> AsyncIterator[str]:
    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            while True:
                writer.write(unit * 1_000)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(pour, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/cb"
    finally:
        server.close()


async def test_slots_are_free_again_after_failures(callback: Callback) -> None:
    callback.refusal = Answer(hang=True)
    async with verifying(verify_concurrency=2, verify_timeout_s=0.2) as verifier:
        asked = (verifier.verify("subscribe", intent(callback.url)) for _ in range(4))
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(one, VerificationFailed) for one in results)
        async with verifier.limiter.take(["one"]), verifier.limiter.take(["another"]):
            pass


class Elsewhere(Callback):
    host = "127.0.0.2"


async def test_targets_that_hang_leave_slots_to_others(callback: Callback) -> None:
    """Names of one domain or of one address are one target; connections must suffice too."""
    by_domain = Name(["127.0.0.2"])
    names = {"*.tarpit.example": by_domain, "a.example": by_domain, "b.example": by_domain}
    with dns(names) as zone, Elsewhere() as tarpit:
        few = SLOTS_PER_TARGET + 2
        async with verifying(verify_concurrency=few, dns_servers=(zone.server,)) as verifier:
            tarpit.refusal = Answer(hang=True)
            hosts = [f"{number}.tarpit.example" for number in range(20)]
            hosts += ["a.example", "b.example"] * 5
            urls = [tarpit.url.replace(tarpit.host, host) for host in hosts]
            asked = [asyncio.create_task(verifier.verify("subscribe", intent(url))) for url in urls]
            await until(lambda: len(tarpit.requests) == SLOTS_PER_TARGET, "question")
            await verifier.verify("subscribe", intent(callback.url))
            assert not any(one.done() for one in asked)
            assert len(tarpit.requests) == SLOTS_PER_TARGET
            for one in asked:
                one.cancel()
            await asyncio.wait(asked)


async def test_the_wait_for_a_slot_is_limited(callback: Callback) -> None:
    few = verifying(verify_concurrency=1, verify_timeout_s=0.05)
    async with few as verifier, AsyncExitStack() as held:
        await held.enter_async_context(verifier.limiter.take(["elsewhere"]))
        with pytest.raises(VerificationFailed, match="too many verifications") as caught:
            await verifier.verify("subscribe", intent(callback.url))
    assert caught.value.limit == "0.05 s"
    assert callback.requests == []
