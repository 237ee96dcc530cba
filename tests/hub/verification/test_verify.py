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
from warrenmq.hub.errors import CallbackRefused, VerificationFailed
from warrenmq.hub.guard import domains
from warrenmq.hub.guard.guard import NOT_REACHED, Guard
from warrenmq.hub.settings import HubSettings
from warrenmq.hub.subscriptions.intent import Intent
from warrenmq.hub.subscriptions.options import DEFAULTS
from warrenmq.hub.verification.verify import TURNS_PER_TARGET, Verifier, question


def intent(callback: str, **given: Any) -> Intent:
    values: dict[str, Any] = {"topic": "eu.#", "shown_topic": "eu.#", "lease_seconds": 600}
    values.update(
        {
            "is_verified": True,
            "is_sync": True,
            "verify_token": None,
            "secret": None,
            "basic_auth": None,
        }
    )
    return Intent(callback=callback, **{**values, "options": DEFAULTS, **given})


@contextlib.asynccontextmanager
async def verifying(**given: Any) -> AsyncIterator[Verifier]:
    settings = HubSettings(**{"allow_loopback": True, **given})
    await domains.load()
    guard = Guard(settings)
    verifier = Verifier(settings, guard)
    try:
        yield verifier
    finally:
        await verifier.close()
        await guard.close()


def test_the_question_has_what_websub_asks_for() -> None:
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


def test_an_unsubscribe_has_no_lease() -> None:
    assert "lease" not in question("unsubscribe", intent("http://a.b/"), "c")


async def test_the_secret_is_never_sent(callback: Callback) -> None:
    async with verifying() as verifier:
        await verifier.verify("subscribe", intent(callback.url, secret="s3cret"))
    assert "s3cret" not in callback.requests[0].raw_path


async def test_credentials_for_the_callback_go_along(callback: Callback) -> None:
    async with verifying() as verifier:
        await verifier.verify("subscribe", intent(callback.url))
        await verifier.verify("subscribe", intent(callback.url, basic_auth="bWU6eW91"))
    assert [one.headers.get("Authorization") for one in callback.requests] == [
        None,
        "Basic bWU6eW91",
    ]


@pytest.mark.parametrize("rest", ["/a/./b//%7e%2F/../c?x=%27&y='&", "?token=%41", "", "/"])
async def test_the_callback_is_asked_exactly_as_given(callback: Callback, rest: str) -> None:
    base = callback.url.removesuffix("/callback")
    async with verifying() as verifier:
        await verifier.verify("subscribe", intent(base + rest))
    path = callback.requests[0].raw_path
    assert path.startswith(rest if rest.startswith("/") else f"/{rest}")


async def test_a_long_topic_fits_behind_a_long_callback(callback: Callback) -> None:
    long = callback.url + "?t=" + "x" * 1_900
    async with verifying() as verifier:
        await verifier.verify("subscribe", intent(long, shown_topic="y" * 2_000))
    assert callback.requests[0].query["hub.topic"] == "y" * 2_000


async def test_the_lease_counts_from_the_question(
    callback: Callback, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait for a turn, an hour by the loop's clock, is no part of what is given."""
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    async with verifying(verify_concurrency=1) as verifier, AsyncExitStack() as held:
        await held.enter_async_context(verifier.patient_turns.take(["elsewhere"]))
        take, now_s = verifier.patient_turns.take, loop.time

        def noted(*given: Any) -> contextlib.AbstractAsyncContextManager[None]:
            asked.set()
            return take(*given)

        monkeypatch.setattr(verifier.patient_turns, "take", noted)
        asking = verifier.verify("subscribe", intent(callback.url), is_patient=True)
        task = asyncio.create_task(asking)
        await asked.wait()
        monkeypatch.setattr(loop, "time", lambda: now_s() + 3_600)
        await held.aclose()
        took_s = await task
    assert 0 < took_s < 3_600


async def test_who_is_patient_waits_for_a_turn_and_holds_up_nobody(callback: Callback) -> None:
    few = verifying(verify_concurrency=1, verify_timeout_s=1.0)
    async with few as verifier, AsyncExitStack() as held:
        await held.enter_async_context(verifier.patient_turns.take(["elsewhere"]))
        patient = verifier.verify("subscribe", intent(callback.url), is_patient=True)
        task = asyncio.create_task(patient)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(task), 1.5)  # more than it has to answer
        await verifier.verify("subscribe", intent(callback.url))
        assert not task.done()
        await held.aclose()
        await task
    assert len(callback.requests) == 2


async def test_every_challenge_is_new(callback: Callback) -> None:
    async with verifying() as verifier:
        for _ in range(3):
            await verifier.verify("subscribe", intent(callback.url))
    challenges = {one.query["hub.challenge"] for one in callback.verifications}
    assert len(challenges) == 3 and all(len(one) >= 32 for one in challenges)


async def test_a_name_is_asked_under_its_own_host(callback: Callback) -> None:
    async with verifying() as verifier:
        url = callback.url.replace("127.0.0.1", "localhost")
        await verifier.verify("subscribe", intent(url))
    assert callback.requests[0].headers["Host"] == f"localhost:{callback.port}"


@pytest.mark.parametrize(
    "answer",
    [
        Answer(404),
        Answer(500),
        Answer(200),
        Answer(200, body=b"no"),
        Answer(302, headers={"Location": "/callback"}),
        Answer(200, body=b"x" * 1_000_000),
        Answer(200, hang=True),
    ],
    ids=["404", "500", "empty", "other", "redirect", "huge", "hang"],
)
async def test_any_other_answer_is_a_failure(callback: Callback, answer: Answer) -> None:
    callback.refusal = answer
    async with verifying(verify_timeout_s=0.5) as verifier:
        with pytest.raises(VerificationFailed) as caught:
            await verifier.verify("subscribe", intent(callback.url))
    assert caught.value.status == 400
    assert len(callback.requests) == 1


async def test_a_compressed_challenge_is_not_the_challenge(callback: Callback) -> None:
    callback.refusal = Answer(200, headers={"Content-Encoding": "gzip"}, body=b"\x1f\x8b\x08\x00")
    async with verifying() as verifier:
        with pytest.raises(VerificationFailed):
            await verifier.verify("subscribe", intent(callback.url))
    assert callback.requests[0].headers["Accept-Encoding"] == "identity"


async def test_a_callback_that_is_not_there() -> None:
    async with verifying() as verifier:
        with pytest.raises(VerificationFailed, match="can't be asked"):
            await verifier.verify("subscribe", intent("http://127.0.0.1:1/"))


async def test_cookies_and_proxies_are_left_alone(
    callback: Callback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    callback.refusal = Answer(404, headers={"Set-Cookie": "a=b; Path=/"})
    async with verifying() as verifier:
        for _ in range(2):
            with pytest.raises(VerificationFailed, match="404"):
                await verifier.verify("subscribe", intent(callback.url))
    assert all("Cookie" not in one.headers for one in callback.requests)


async def test_an_inner_address_behind_a_name_is_refused(callback: Callback) -> None:
    ports = frozenset({callback.port})
    async with verifying(allow_loopback=False, callback_ports=ports) as verifier:
        url = callback.url.replace("127.0.0.1", "localhost")
        with pytest.raises(CallbackRefused, match=NOT_REACHED):
            await verifier.verify("subscribe", intent(url))
    assert callback.requests == []


async def test_an_answer_without_end_is_cut() -> None:
    """Interim responses and heads too; within 20 s it would else be "not in time"."""
    for pouring in (b"HTTP/1.1 100 Continue\r\n\r\n", b"x"):
        async with pouring_server(pouring) as url, verifying(verify_timeout_s=20) as verifier:
            with pytest.raises(VerificationFailed, match="can't be asked"):
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


async def test_turns_are_given_back(callback: Callback) -> None:
    callback.refusal = Answer(hang=True)
    async with verifying(verify_concurrency=2, verify_timeout_s=0.2) as verifier:
        asked = (verifier.verify("subscribe", intent(callback.url)) for _ in range(4))
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(one, VerificationFailed) for one in results)
        async with verifier.limiter.take(["one"]), verifier.limiter.take(["another"]):
            pass


class Elsewhere(Callback):
    host = "127.0.0.2"


async def test_targets_that_hang_leave_turns_to_the_others(callback: Callback) -> None:
    """With real connections, for these must not run out either. A thousand names of one domain,
    or of one address, are one target."""
    by_domain = Name(["127.0.0.2"])
    names = {"*.tarpit.example": by_domain, "a.example": by_domain, "b.example": by_domain}
    with dns(names) as zone, Elsewhere() as tarpit:
        few = TURNS_PER_TARGET + 2
        async with verifying(verify_concurrency=few, dns_servers=(zone.server,)) as verifier:
            tarpit.refusal = Answer(hang=True)
            hosts = [f"{number}.tarpit.example" for number in range(20)]
            hosts += ["a.example", "b.example"] * 5
            urls = [tarpit.url.replace(tarpit.host, host) for host in hosts]
            asked = [asyncio.create_task(verifier.verify("subscribe", intent(url))) for url in urls]
            await until(lambda: len(tarpit.requests) == TURNS_PER_TARGET, "question")
            await verifier.verify("subscribe", intent(callback.url))
            assert not any(one.done() for one in asked)
            assert len(tarpit.requests) == TURNS_PER_TARGET
            for one in asked:
                one.cancel()
            await asyncio.wait(asked)


async def test_the_wait_for_a_turn_is_part_of_the_time(callback: Callback) -> None:
    few = verifying(verify_concurrency=1, verify_timeout_s=0.05)
    async with few as verifier, AsyncExitStack() as held:
        await held.enter_async_context(verifier.limiter.take(["elsewhere"]))
        with pytest.raises(VerificationFailed, match="too many verifications") as caught:
            await verifier.verify("subscribe", intent(callback.url))
    assert caught.value.limit == "0.05 s"
    assert callback.requests == []
