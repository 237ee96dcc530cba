"""Worker processes: what they do, what ends them, and that nothing is left of them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.hub.support import until
from tests.hub.topics.feeds import JSON_TYPE, RSS_TYPE
from warrenmq.hub.topics.document import Document
from warrenmq.hub.topics.reading import read
from warrenmq.hub.topics.topic import Topic
from warrenmq.hub.workers.limits import MIB, Limits
from warrenmq.hub.workers.pool import Workers, WorkFailed, WorkRefused

TOPIC = Topic("k", "http://publisher.example/feed")
ITEMS = b'{"version":"https://jsonfeed.org/version/1","items":[' + b"0," * 5_000_000 + b"0]}"
ATTRIBUTES = b"<rss " + b" ".join(b'a%d=""' % number for number in range(100_000)) + b"/>"
ENTRIES = b"<rss><channel>" + b"<item><guid>1</guid></item>" * 100_000 + b"</channel></rss>"


@asynccontextmanager
async def limited(**limits: Any) -> AsyncIterator[Workers]:
    workers = Workers(replace(Limits(), **limits))
    yield workers
    await workers.stop()
    assert workers.pids == []


async def text(workers: Workers, body: bytes = b"text", host: str = "a") -> Document:
    return await read(workers, Topic("k", f"http://{host}/"), "text/plain", body)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_process_is_started_when_there_is_work_and_kept(workers: Workers) -> None:
    assert workers.pids == []
    assert (await text(workers)).news == b"text"
    [pid] = workers.pids
    assert (await text(workers, b"x" * 10 * MIB)).news == b"x" * 10 * MIB
    assert pid != os.getpid() and is_running(pid)
    await workers.stop()
    assert not is_running(pid)


async def test_what_a_function_refuses_ends_no_process(workers: Workers) -> None:
    await text(workers)
    before = workers.pids
    with pytest.raises(WorkRefused, match="it is empty"):
        await text(workers, b"")
    assert workers.pids == before


async def test_too_much_memory() -> None:
    if sys.platform == "darwin":
        pytest.skip("macOS has no limit of the address space")
    async with limited(memory_bytes=128 * MIB) as workers:
        await text(workers)
        before = workers.pids
        with pytest.raises(WorkFailed, match="more than 128 MiB of memory"):
            await read(workers, TOPIC, JSON_TYPE, ITEMS)
        await text(workers)
        assert len(workers.pids) == 1 and workers.pids != before and not is_running(before[0])


async def test_too_much_of_the_processor() -> None:
    async with limited(cpu_s=0) as workers:
        with pytest.raises(WorkFailed, match="more than 0 s of the processor"):
            await read(workers, TOPIC, RSS_TYPE, b"<rss>" + b"<a/>" * 5_000_000 + b"</rss>")
        await text(workers)


async def test_too_much_time() -> None:
    async with limited(wall_s=0.0) as workers:
        with pytest.raises(WorkFailed, match="more than 0 s"):
            await text(workers)
        assert workers.pids == []


async def test_too_many_bytes() -> None:
    async with limited(max_request_bytes=100, max_reply_bytes=10) as workers:
        with pytest.raises(WorkRefused, match=r"it has \d+ bytes, 100 can be read"):
            await text(workers, b"x" * 200)
        with pytest.raises(WorkFailed, match=r"has \d+ bytes, 10 are taken"):
            await text(workers)


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGSEGV])
async def test_one_that_was_killed_is_replaced(workers: Workers, stop: signal.Signals) -> None:
    await text(workers)
    [pid] = workers.pids
    os.kill(pid, signal.SIGSTOP)
    work = asyncio.create_task(text(workers))
    os.kill(pid, stop)
    os.kill(pid, signal.SIGCONT)
    with pytest.raises(WorkFailed, match=f"has ended with -{stop.value}"):
        await work
    await text(workers)
    assert len(workers.pids) == 1 and workers.pids != [pid]


async def test_signals_that_end_a_server_are_not_for_them(workers: Workers) -> None:
    await text(workers)
    [pid] = workers.pids
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(pid, stop)
    await text(workers)
    assert workers.pids == [pid]


async def test_one_host_has_one_process_at_a_time(workers: Workers) -> None:
    """Its documents wait for each other, and those of another host pass them."""
    await asyncio.gather(text(workers), text(workers, host="b"))
    assert len(workers.pids) == 2
    for pid in workers.pids:
        os.kill(pid, signal.SIGSTOP)
    hostile = [asyncio.create_task(text(workers, host="hostile")) for _ in range(10)]
    await asyncio.sleep(0)
    honest = asyncio.create_task(text(workers, host="honest"))
    # The honest one is at the second process, or it could not be done before the ten.
    for pid in list(workers.pids):
        os.kill(pid, signal.SIGCONT)
        if await _is_done(honest):
            break
    assert honest.done()
    for pid in workers.pids:
        os.kill(pid, signal.SIGCONT)
    await asyncio.gather(*hostile)


async def _is_done(task: asyncio.Task[Document]) -> bool:
    try:
        await asyncio.wait_for(asyncio.shield(task), 1)
    except TimeoutError:
        return False
    return True


async def test_who_is_cancelled_leaves_no_process_behind(workers: Workers) -> None:
    await text(workers)
    [pid] = workers.pids
    os.kill(pid, signal.SIGSTOP)
    work = asyncio.create_task(text(workers))
    await asyncio.sleep(0)
    work.cancel()
    await asyncio.wait([work])
    assert work.cancelled() and workers.pids == [] and not is_running(pid)


@pytest.mark.parametrize(
    ("kind", "body"), [(JSON_TYPE, ITEMS), (RSS_TYPE, ATTRIBUTES), (RSS_TYPE, ENTRIES)]
)
async def test_the_loop_goes_on_while_a_hostile_document_is_read(
    workers: Workers, kind: str, body: bytes
) -> None:
    """Nothing is read in this process: its processor time stays small whatever the worker does."""
    await text(workers)
    [pid] = workers.pids
    os.kill(pid, signal.SIGSTOP)
    work = asyncio.create_task(read(workers, TOPIC, kind, body))
    limiter = 0
    while limiter < 10_000:  # with the document under way
        await asyncio.sleep(0)
        limiter += 1
    assert not work.done()
    os.kill(pid, signal.SIGCONT)
    await asyncio.wait([work])
    assert isinstance(work.exception(), WorkFailed | WorkRefused | None)


def test_no_secret_of_the_server_is_in_their_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARREN_DEFAULT_PASS", "secret")

    async def environment() -> bytes:
        async with limited() as workers:
            await text(workers)
            return Path(f"/proc/{workers.pids[0]}/environ").read_bytes()

    if not Path("/proc").exists():
        pytest.skip("the environment of a process is not to be seen here")
    found = asyncio.run(environment())
    assert b"PATH=" in found and b"WARREN_" not in found


async def test_it_inherits_no_socket(workers: Workers) -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    await text(workers)
    descriptors = Path(f"/proc/{workers.pids[0]}/fd")
    if descriptors.exists():
        opened = [os.readlink(one) for one in descriptors.iterdir()]
        assert not [one for one in opened if one.startswith("socket:")]
    server.close()
    await until(lambda: not server.sockets, "end of the server")
