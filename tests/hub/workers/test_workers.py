"""Worker processes: what they do, what ends them, and that nothing is left of them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.hub.support import until
from tests.hub.topics.feeds import JSON_TYPE, RSS_TYPE
from warrenmq.hub.processes.starter import ProcessStarter
from warrenmq.hub.topics.reading import read
from warrenmq.hub.topics.topic import Topic
from warrenmq.hub.workers.limits import MIB, WorkerLimits
from warrenmq.hub.workers.pool import Workers, WorkFailed, WorkRefused

TOPIC = Topic("k", "http://publisher.example/feed")
ITEMS = b'{"version":"https://jsonfeed.org/version/1","items":[' + b"0," * 5_000_000 + b"0]}"


@asynccontextmanager
async def limited(**limits: Any) -> AsyncIterator[Workers]:
    with ProcessStarter() as starter:
        workers = Workers(starter, replace(WorkerLimits(), **limits))
        yield workers
        await workers.stop()
    assert workers.pids == []


async def compare(workers: Workers, content_type: str, body: bytes, host: str = "a") -> bytes:
    """Has a process compare content with nothing known; returns its reply."""
    request = msgspec.msgpack.encode((content_type, body, {}))
    return await workers.run("read_document", request, origin=host)


async def text(workers: Workers, body: bytes = b"text", host: str = "a") -> bytes:
    return await compare(workers, "text/plain", body, host)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_process_is_started_when_needed_and_kept(workers: Workers) -> None:
    assert workers.pids == []
    assert (await read(workers, TOPIC, "text/plain", b"text")).news == b"text"
    [pid] = workers.pids
    large = b"x" * 10 * MIB
    assert (await read(workers, TOPIC, "text/plain", large)).news == large
    assert pid != os.getpid() and is_running(pid)
    await workers.stop()
    assert not is_running(pid)


async def test_a_refused_document_ends_no_process(workers: Workers) -> None:
    await text(workers)
    before = workers.pids
    with pytest.raises(WorkRefused, match="OPML"):
        await workers.run("read_opml", b"<rss/>", origin="a")
    assert workers.pids == before


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no limit of the address space")
async def test_too_much_memory() -> None:
    async with limited(memory_bytes=128 * MIB) as workers:
        await text(workers)
        before = workers.pids
        with pytest.raises(WorkFailed, match="more than 128 MiB of memory"):
            await compare(workers, JSON_TYPE, ITEMS)
        await text(workers)
        assert len(workers.pids) == 1 and workers.pids != before and not is_running(before[0])


async def test_too_much_time() -> None:
    async with limited(cpu_s=0) as workers:
        with pytest.raises(WorkFailed, match="more than 0 s of the processor"):
            await compare(workers, RSS_TYPE, b"<rss>" + b"<a/>" * 5_000_000 + b"</rss>")
        await text(workers)
    async with limited(wall_s=0.0) as workers:
        with pytest.raises(WorkFailed, match="more than 0 s"):
            await text(workers)
        assert workers.pids == []


async def test_too_many_bytes() -> None:
    async with limited(max_request_bytes=100, max_reply_bytes=10) as workers:
        with pytest.raises(WorkRefused, match=r"its \d+ bytes exceed the limit of 100"):
            await text(workers, b"x" * 200)
        with pytest.raises(WorkFailed, match=r"of \d+ bytes exceeds the limit of 10"):
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


async def test_signals_that_end_a_server_are_ignored(workers: Workers) -> None:
    await text(workers)
    [pid] = workers.pids
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(pid, stop)
    await text(workers)
    assert workers.pids == [pid]


async def test_one_host_has_one_process_at_a_time(workers: Workers) -> None:
    """Its documents wait for each other, and those of another host do not."""
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


async def _is_done(task: asyncio.Task[bytes]) -> bool:
    try:
        await asyncio.wait_for(asyncio.shield(task), 1)
    except TimeoutError:
        return False
    return True


async def test_a_cancelled_call_ends_its_process(workers: Workers) -> None:
    await text(workers)
    [pid] = workers.pids
    os.kill(pid, signal.SIGSTOP)
    work = asyncio.create_task(text(workers))
    await asyncio.sleep(0)
    work.cancel()
    await asyncio.wait([work])
    assert work.cancelled() and workers.pids == [] and not is_running(pid)


async def test_no_settings_are_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARREN_DEFAULT_PASS", "secret")
    async with limited() as workers:
        await text(workers)
        environment = Path(f"/proc/{workers.pids[0]}/environ")
        if not environment.exists():
            pytest.skip("the environment of a process can't be read here")
        found = environment.read_bytes()
    assert b"PATH=" in found and b"WARREN_" not in found


async def test_no_socket_is_inherited(workers: Workers) -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    await text(workers)
    descriptors = Path(f"/proc/{workers.pids[0]}/fd")
    if descriptors.exists():
        opened = [os.readlink(one) for one in descriptors.iterdir()]
        assert not [one for one in opened if one.startswith("socket:")]
    server.close()
    await until(lambda: not server.sockets, "end of the server")


def test_what_reads_most_documents_imports_little() -> None:
    """These take longer to import than all the rest of a worker process."""
    readers = "formats.feed_reader", "outputs.collecting", "outputs.rendering", "topics.reading"
    modules = ("workers.main", "links.remote", "topics.document_reader", *readers)
    program = "import sys, " + ", ".join(f"warrenmq.hub.{name}" for name in modules)
    program += "; print(*{'asyncio', 'feedparser', 'jsonpath'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert shown.stdout.split() == []
