"""Tunnels: requests to applications that poll for them, and polls that wait."""

from __future__ import annotations

import base64
import json
import re
import selectors
import socket
import time
from functools import partial

from ..brokers import Broker
from ..client import Address, BenchError
from ..figures import Figures, Goal
from ..http_client import HttpConnection, request
from ..measure import percentile
from ..scenario import Scenario, Settings
from ..spent import Spent
from ..worker import Control, Crew
from .scale import raise_open_files

POLLERS, REQUESTORS, SOCKETS = 12, 24, 4
WAITING, POLLS_PER_LABEL = 10_000, 16
KB_AT_MOST = 15.0
OVERHEAD_MS_AT_MOST = 20.0
TOKEN = "bench-" + "t" * 20
REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"
SETTLED_S = 0.2
_REPLY_TEXT = base64.b64encode(REPLY)
_UPGRADE = (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: %b\r\n\r\n" % base64.b64encode(bytes(16))
)
_CLOSE = b"\r\nConnection: close\r\n"
_FIRST = re.compile(rb'<http://[^/]*([^>]*)>; rel="(?:first|next)"')


def _get(address: Address, path: str, host: str = "") -> bytes:
    return (
        f"GET {path} HTTP/1.1\r\nHost: {host or address.host}:{address.port}\r\n"
        "Accept: message/http\r\n\r\n"
    ).encode()


def _enrol(address: Address, label: str) -> str:
    """Returns the path of the first Request URL."""
    with socket.create_connection(address[:2]) as connection:
        target = f"/reversehttp?name={label}&token={TOKEN}&lease=3600"
        connection.sendall(request(address, "POST", target))
        return _link(connection.recv(65536))


def _poll_count(address: Address) -> int:
    """Returns how many polls wait, of all labels."""
    with socket.create_connection(address[:2]) as connection:
        connection.sendall(request(address, "GET", "/reversehttp").replace(b"\r\n", _CLOSE, 1))
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    return sum(map(int, re.findall(rb'"waiting_polls":(\d+)', answer)))


def _link(answer: bytes) -> str:
    found = _FIRST.search(answer)
    if found is None:
        raise BenchError(f"no link: {answer[:400].decode(errors='replace')}")
    return found[1].decode()


class _Poller:
    """Polls on one connection and replies on another, without waiting for the 202."""

    def __init__(self, address: Address, label: str) -> None:
        self._address = address
        self._path = _enrol(address, label)
        self.polls, self.replies = (_connected(address) for _ in range(2))
        self._poll()

    def _poll(self) -> None:
        self.polls.sendall(_get(self._address, self._path))

    def serve(self) -> None:
        """Reads a request, polls again, and replies."""
        answer = self.polls.recv(65536)
        at, self._path = self._path, _link(answer)
        self._poll()
        if answer.startswith(b"HTTP/1.1 200"):
            self.replies.sendall(request(self._address, "POST", at, REPLY))

    def check(self) -> None:
        """Reads what the server says to replies."""
        answers = self.replies.recv(65536)
        if not answers or answers.count(b"HTTP/1.1 ") != answers.count(b"HTTP/1.1 202 "):
            raise BenchError(f"wanted 202: {answers[:400].decode(errors='replace')}")


class _Socket:
    """Takes requests from a WebSocket and replies over it; `polls` is where to read."""

    def __init__(self, address: Address, label: str) -> None:
        self.polls = _connected(address)
        head = _get(address, _enrol(address, label)).removesuffix(b"\r\n") + _UPGRADE
        self.polls.sendall(head)
        self._data = b""
        while b"\r\n\r\n" not in self._data:
            self._data += self.polls.recv(65536)
        answer, _, self._data = self._data.partition(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 101 "):
            raise BenchError(f"no WebSocket: {answer[:400].decode(errors='replace')}")

    def serve(self) -> None:
        """Replies to all requests that have come."""
        data, replies = self._data + self.polls.recv(65536), []
        while len(data) > 4 and len(data) >= 4 + (size := int.from_bytes(data[2:4], "big")):
            document = json.loads(data[4 : 4 + size])
            data = data[4 + size :]
            if "error" in document:
                raise BenchError(str(document["error"]))
            text = b'{"id":"%b","message":"%b"}' % (document["id"].encode(), _REPLY_TEXT)
            replies.append(b"\x81\xfe" + len(text).to_bytes(2, "big") + bytes(4) + text)
        self._data = data
        self.polls.sendall(b"".join(replies))


def _connected(address: Address) -> socket.socket:
    found = socket.create_connection(address[:2])
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def _serve(
    control: Control, address: Address, label: str, count: int, seconds: float, *, sockets: bool
) -> None:
    with selectors.DefaultSelector() as selector:
        for _ in range(count):
            poller = _Socket(address, label) if sockets else _Poller(address, label)
            selector.register(poller.polls, selectors.EVENT_READ, poller.serve)
            if isinstance(poller, _Poller):
                selector.register(poller.replies, selectors.EVENT_READ, poller.check)
        control.ready()
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                key.data()


def _ask(
    control: Control, address: Address, data: bytes, at_once: int, seconds: float
) -> list[float]:
    """Gives the seconds that each request took."""
    selector, times_s = selectors.DefaultSelector(), list[float]()
    connections = [HttpConnection(address) for _ in range(at_once)]
    control.ready()
    sent_at = dict.fromkeys(connections, time.monotonic())
    for connection in connections:
        selector.register(connection.socket, selectors.EVENT_READ, connection)
        connection.send(data)
    deadline, waiting = time.monotonic() + seconds, at_once
    while waiting:
        for key, _ in selector.select(seconds):
            if not key.data.receive(200):
                continue
            now = time.monotonic()
            times_s.append(now - sent_at[key.data])
            if now < deadline:
                sent_at[key.data] = now
                key.data.send(data)
            else:
                waiting -= 1
                selector.unregister(key.fileobj)
    return times_s


def _requests(
    broker: Broker, settings: Settings, pollers: int, at_once: int, *, sockets: bool = False
) -> Figures:
    """In: requests answered per second by an application behind a tunnel."""
    address = broker.http
    assert address is not None
    data = _get(address, "/hi?x=1", "bench.tun.localhost")
    with Crew() as crew:
        serve = partial(_serve, sockets=sockets)
        serving = crew.hire(serve, address, "bench", pollers, settings.seconds + 5)
        asking = crew.hire(_ask, address, data, at_once, settings.seconds)
        spent = Spent(broker)
        crew.go()
        times_s = asking.result(settings.seconds * 2 + 10)
        line = Figures(len(times_s) / settings.seconds, None, spent.cpu_us(len(times_s)))
        line.p50_ms, line.p99_ms = (percentile(times_s, one) * 1e3 for one in (50, 99))
        serving.stop()
    return line


def round_trip(broker: Broker, settings: Settings) -> Figures:
    """One request at a time; compared with one that the server answers by itself."""
    assert broker.http is not None
    line = _requests(broker, settings, 1, 1)
    connection = HttpConnection(broker.http)
    own = _get(broker.http, "/health/live")
    own_ms = percentile([connection.ask(own, 200) for _ in range(500)], 99) * 1e3
    connection.close()
    assert line.p99_ms is not None
    overhead_ms = line.p99_ms - own_ms
    line.note = f"p99 {overhead_ms:.1f} ms above an answer of the server itself"
    goal = f"{OVERHEAD_MS_AT_MOST:g} ms above at most"
    line.goals.append(Goal(goal, overhead_ms <= OVERHEAD_MS_AT_MOST))
    return line


def waiting_polls(broker: Broker, _: Settings) -> Figures:
    """In: polls begun per second; then all wait. The note tells what each costs in memory."""
    address = broker.http
    assert address is not None
    raise_open_files(WAITING)
    labels = [f"wait-{number}" for number in range(-(-WAITING // POLLS_PER_LABEL))]
    private_paths = [_enrol(address, label).rpartition("/")[0] for label in labels]
    spent, start = Spent(broker), time.monotonic()
    waiting: list[socket.socket] = []
    try:
        for number in range(WAITING):
            poll = socket.create_connection(address[:2])
            path = f"{private_paths[number // POLLS_PER_LABEL]}/{number:024d}"
            poll.sendall(_get(address, path))
            waiting.append(poll)
        while _poll_count(address) < WAITING:
            time.sleep(SETTLED_S)
        rate = WAITING / (time.monotonic() - start)
        each_kb = spent.growth_bytes() / WAITING / 1e3
    finally:
        for poll in waiting:
            poll.close()
    line = Figures(rate, None, spent.cpu_us(WAITING), spent.peak_mb())
    line.note = f"{WAITING:,} waiting: {each_kb:.1f} kB each"
    line.goals.append(Goal(f"{KB_AT_MOST:g} kB each at most", each_kb <= KB_AT_MOST))
    return line


SCENARIOS = (
    Scenario("tunnel-round-trip", round_trip, http=True),
    Scenario(
        "tunnel-requests", partial(_requests, pollers=POLLERS, at_once=REQUESTORS), 2_000, http=True
    ),
    Scenario(
        "tunnel-requests-websocket",
        partial(_requests, pollers=SOCKETS, at_once=REQUESTORS, sockets=True),
        2_000,
        http=True,
    ),
    Scenario("tunnel-polls-10k", waiting_polls, fresh=True, http=True),
)
