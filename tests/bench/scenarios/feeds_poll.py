"""Feeds are imported and polled: from a server at 50 addresses, where 19 of 20 have not changed."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from ..brokers import Broker
from ..client import Address, BenchError
from ..figures import Figures, Goal
from ..http_client import HttpConnection, request
from ..scenario import Scenario, Settings
from ..spent import Spent
from ..worker import Control, Crew

FEEDS, FEEDS_SHORT, FIRST = 10_000, 1_000, 500
SITES, AT_ONCE, EACH_CHANGED = 50, 16, 20
ENTRIES = 10
IMPORT_S_AT_MOST, POLL_S_AT_MOST, KB_AT_MOST = 20.0, 40.0, 3.0
PORT = 18_231
_ROUND = "/round"
"""A request for this path changes one feed of twenty."""
_PATIENCE_S = 600.0


class _Site(asyncio.Protocol):
    """Answers each request in one write; a page has the version that its number gives it."""

    round = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._data = transport, b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        while b"\r\n\r\n" in self._data:
            head, _, self._data = self._data.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            if path == _ROUND:
                _Site.round += 1
            self._transport.write(_answer(path, head))


def _answer(path: str, head: bytes) -> bytes:
    number = int(path.rpartition("/")[2]) if path != _ROUND else 0
    version = _Site.round if number % EACH_CHANGED == 0 else 0
    etag = f'"{number}-{version}"'
    if f"If-None-Match: {etag}".lower().encode() in head.lower():
        return f"HTTP/1.1 304 Not Modified\r\nETag: {etag}\r\n\r\n".encode()
    body = _feed(number, version)
    fields = f"Content-Type: application/rss+xml\r\nETag: {etag}\r\nContent-Length: {len(body)}"
    return f"HTTP/1.1 200 OK\r\n{fields}\r\n\r\n".encode() + body


def _feed(number: int, version: int) -> bytes:
    items = "".join(
        f"<item><title>Entry {one} of {number}</title><guid>urn:{number}:{one}</guid>"
        f"<link>http://news.example/{number}/{one}</link><description>{'Text. ' * 50}</description>"
        "</item>"
        for one in range(ENTRIES + version, version, -1)
    )
    channel = f"<title>Feed {number}</title><link>http://news.example/{number}</link>{items}"
    return f"<rss version='2.0'><channel>{channel}</channel></rss>".encode()


def serve_feeds(control: Control) -> None:
    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(_Site, "0.0.0.0", PORT, backlog=1_000)
        await loop.run_in_executor(None, control.ready)
        await server.serve_forever()

    asyncio.run(serve())


def feeds_poll(broker: Broker, settings: Settings) -> Figures:
    """In: feeds polled per second, of which 5 % have a new entry, which is stored and published."""
    count = FEEDS if settings.complete else FEEDS_SHORT
    assert broker.http is not None
    with Crew() as crew:
        crew.hire(serve_feeds)
        crew.go()
        _imported(broker.http, range(FIRST))
        _wait_until_polled(broker.http, FIRST)
        memory = Spent(broker)
        _imported(broker.http, range(FIRST, count))
        _wait_until_polled(broker.http, count)
        _names(broker.http)
        each_kb = memory.growth_bytes() / (count - FIRST) / 1e3
        line = _polled(broker, broker.http)
    line.note = f"{count:,} feeds, {each_kb:.1f} kB each"
    poll_s = FEEDS / (line.in_rate or 1)
    line.goals += [
        Goal(f"{FEEDS:,} polled in {POLL_S_AT_MOST:g} s", poll_s <= POLL_S_AT_MOST),
    ]
    if settings.complete:  # of few feeds, what they share weighs more than they do
        line.goals.append(Goal(f"{KB_AT_MOST:g} kB each at most", each_kb <= KB_AT_MOST))
    return line


def feeds_import(broker: Broker, settings: Settings) -> Figures:
    """In: feeds of an OPML document that are registered per second; nothing answers their polls."""
    count = FEEDS if settings.complete else FEEDS_SHORT
    assert broker.http is not None
    spent, start = Spent(broker), time.monotonic()
    _imported(broker.http, range(count))
    seconds = time.monotonic() - start
    line = Figures(count / seconds, None, spent.cpu_us(count), spent.peak_mb())
    line.seconds, line.job = seconds, count
    goal = f"{FEEDS:,} in {IMPORT_S_AT_MOST:g} s"
    line.goals.append(Goal(goal, seconds * FEEDS / count <= IMPORT_S_AT_MOST))
    return line


def change_feeds() -> None:
    """Gives one feed of twenty, of which the first is number 0, a new entry."""
    address = Address("127.0.0.1", PORT)
    site = HttpConnection(address)
    site.ask(request(address, "GET", _ROUND), 200)
    site.close()


def _polled(broker: Broker, address: Address) -> Figures:
    """Polls all feeds once, after one of twenty has changed."""
    names = _names(address)
    change_feeds()
    spent, start = Spent(broker), time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(lambda place: _poll(address, names[place::AT_ONCE]), range(AT_ONCE)))
    seconds = time.monotonic() - start
    line = Figures(len(names) / seconds, None, spent.cpu_us(len(names)), spent.peak_mb())
    line.seconds, line.job = seconds, len(names)
    return line


def _poll(address: Address, names: list[str]) -> None:
    connection = HttpConnection(address)
    for name in names:
        path = f"/api/hub/feeds/{name}/poll"
        connection.ask(request(address, "POST", path, b"{}", "application/json"), 200)
    connection.close()


def _imported(address: Address, numbers: range) -> None:
    """Imports feeds, and waits until they are registered."""
    outlines = "".join(
        f'<outline text="Feed {number}" type="rss" '
        f'xmlUrl="http://127.0.0.{1 + number % SITES}:{PORT}/{number}"/>'
        for number in numbers
    )
    document = f'<opml version="2.0"><head/><body>{outlines}</body></opml>'.encode()
    connection = HttpConnection(address)
    path = "/api/hub/feeds/import"
    connection.ask(request(address, "POST", path, document, "text/x-opml"), 202)
    job = json.loads(connection.body)
    while job["state"] == "running":
        time.sleep(0.05)
        connection.ask(request(address, "GET", f"{path}/{job['id']}"), 200)
        job = json.loads(connection.body)
    connection.close()
    if job["added"] != len(numbers):
        raise BenchError(f"not all feeds were imported: {job}")


def _wait_until_polled(address: Address, count: int) -> None:
    connection, deadline = HttpConnection(address), time.monotonic() + _PATIENCE_S
    while True:
        connection.ask(request(address, "GET", "/api/hub/feeds?page_size=1"), 200)
        states = json.loads(connection.body)["statistics"]["states"]
        if states["ok"] == count:
            break
        if time.monotonic() > deadline:
            raise BenchError(f"not all feeds are polled: {states}")
        time.sleep(0.2)  # Each answer is a look at all feeds, by the server that is measured.
    connection.close()


def _names(address: Address) -> list[str]:
    return list(_all_names(address))


def _all_names(address: Address) -> Iterator[str]:
    connection, number, pages = HttpConnection(address), 1, 1
    while number <= pages:
        path = f"/api/hub/feeds?page={number}&page_size=500"
        connection.ask(request(address, "GET", path), 200)
        found = json.loads(connection.body)
        pages, number = found["page_count"], number + 1
        yield from (feed["name"] for feed in found["items"])
    connection.close()


SCENARIOS = (
    Scenario("feeds-import", feeds_import, fresh=True, http=True),
    Scenario("feeds-poll", feeds_poll, fresh=True, http=True),
)
