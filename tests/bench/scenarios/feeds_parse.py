"""Feeds are read in worker processes: 20 entries of 1.5 kB each, RSS, Atom and JSON in turn."""

from __future__ import annotations

import asyncio
import time
from itertools import count, cycle

from warrenmq.hub.formats.media_types import MEDIA_TYPES, Format
from warrenmq.hub.formats.model import Author, FeedDocument, FeedHead, Item
from warrenmq.hub.formats.reading import read
from warrenmq.hub.formats.urls import DocumentUrls
from warrenmq.hub.formats.writing import write
from warrenmq.hub.processes.starter import ProcessStarter
from warrenmq.hub.workers.limits import WorkerLimits
from warrenmq.hub.workers.pool import Workers

from ..brokers import Broker
from ..client import BenchError
from ..figures import Figures
from ..measure import Meter
from ..scenario import Scenario, Settings

ENTRIES = 20
FEEDS_A_FORMAT = 10
FORMATS: tuple[Format, ...] = ("rss", "atom", "json")
FLOOR = 300
_PARAGRAPH = (
    '<p>A sentence of a <a href="https://news.example/{number}/more">usual length</a>, as it is in'
    " most feeds, with <b>some</b> markup &amp; a reference; and then another one.</p>\n"
    '<p><img src="https://news.example/{number}.jpg" alt="A picture" width="640"></p>\n'
)
_MODULES = [
    '<slash:comments xmlns:slash="http://purl.org/rss/1.0/modules/slash/">3</slash:comments>',
    '<wfw:commentRss xmlns:wfw="http://wellformedweb.org/CommentAPI/">a:b</wfw:commentRss>',
]


def feed(format: Format, seed: int) -> bytes:
    """Returns a document; those of other seeds have other entries."""
    items = [_item(number) for number in range(seed * ENTRIES, (seed + 1) * ENTRIES)]
    head = FeedHead(title=f"News {seed}", home_page_url="https://news.example/", language="en")
    return write(format, FeedDocument(head, items), urls=DocumentUrls("https://news.example/feed"))


def _item(number: int) -> Item:
    return Item(
        id=f"https://news.example/?p={number}",
        url=f"https://news.example/{number}",
        title=f"What happened on day {number}",
        content_html=_PARAGRAPH.format(number=number) * 6,
        summary=f"On day {number} something happened, and then something else. " * 3,
        date_published="2026-11-23T09:00:00Z",
        authors=[Author("Ann Bell")],
        tags=["news", "example"],
        extensions={"_xml": {"elements": _MODULES}},
    )


def parse(_: Broker, settings: Settings) -> Figures:
    """Out: feeds a second of the hub's two processes; CPU and memory are theirs."""
    return asyncio.run(_parse(settings.seconds))


async def _parse(seconds: float) -> Figures:
    with ProcessStarter() as starter:
        workers = Workers(starter)
        try:
            return await _measure(workers, seconds)
        finally:
            await workers.stop()


async def _measure(workers: Workers, seconds: float) -> Figures:
    feeds = [(one, feed(one, seed)) for one in FORMATS for seed in range(FEEDS_A_FORMAT)]
    documents = cycle(feeds)
    processes = WorkerLimits().processes
    await asyncio.gather(*(_read(workers, *feeds[0], host=number) for number in range(processes)))
    meters = [Meter(pid) for pid in workers.pids]
    before_s = sum(meter.read().cpu_s for meter in meters)
    start, hosts = time.monotonic(), count()
    done = 0

    async def one_after_another() -> None:
        nonlocal done
        while time.monotonic() - start < seconds:
            await _read(workers, *next(documents), host=next(hosts))
            done += 1

    await asyncio.gather(*(one_after_another() for _ in range(processes * 2)))
    passed_s = time.monotonic() - start
    used = [meter.read() for meter in meters]
    cpu_us = (sum(one.cpu_s for one in used) - before_s) / done * 1e6
    size = sum(len(body) for _, body in feeds) / len(feeds)
    line = Figures(None, done / passed_s, cpu_us, sum(one.peak_bytes for one in used) / 1e6)
    line.note = f"{processes} processes, {size / 1e3:.0f} kB each"
    return line


async def _read(workers: Workers, format: Format, body: bytes, *, host: int) -> None:
    found = await read(workers, f"https://h{host}.example/", MEDIA_TYPES[format], body)
    if len(found.items) != ENTRIES:
        raise BenchError(f"{len(found.items)} of {ENTRIES} entries were read")


SCENARIOS = (Scenario("feeds-parse", parse, FLOOR, http=True),)
