"""`/stream`: one reader at full speed, very many that wait for one message, and many that read what
an exchange keeps."""

from __future__ import annotations

import json
import mmap
import selectors
import socket
import struct
import time
from functools import partial

from ..brokers import Broker
from ..client import Address, BenchError
from ..figures import Figures, Goal
from ..frames import Message, Stream
from ..http_client import HttpConnection, basic, request
from ..producer import Load, Sent, publish
from ..scenario import Scenario, Settings
from ..spent import Spent
from ..worker import Control, Crew
from .scale import raise_open_files

EXCHANGE = "amq.fanout"
BODY = b"0123456789" * 10
AHEAD = 100_000
READERS = 10_000
KB_AT_MOST = 15.0
FAN_OUT_S_AT_MOST = 1.0
MESSAGES_PER_S = 100_000
KEPT = "bench.kept"
KEPT_READERS = 1_000
KEPT_MESSAGES = 100
KEPT_S_AT_MOST = 2.0
READ_BYTES = 1 << 20
TIMEOUT_S = 30.0
_MARK = b'"id":"msg_'
_COUNT = struct.Struct("Q")
_SSE = "Accept: text/event-stream\r\n"
_WEBSOCKET = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


def _open(address: Address, fields: str, exchange: str = EXCHANGE) -> socket.socket:
    """Returns a connection behind the head of its answer."""
    reader = socket.create_connection(address[:2], timeout=TIMEOUT_S)
    head = (
        f"GET /stream/x/{exchange} HTTP/1.1\r\nHost: {address.host}:{address.port}\r\n"
        f"Authorization: {basic(address)}\r\n{fields}\r\n"
    )
    reader.sendall(head.encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += reader.recv(4096)
    if not answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 101")):
        raise BenchError(answer[:400].decode(errors="replace"))
    return reader


def _read(control: Control, address: Address, fields: str, counter: mmap.mmap) -> float:
    """Counts messages until the publisher's number of them is there; gives the seconds from the
    first one on."""
    reader = _open(address, fields)
    control.ready()
    count, rest, began = 0, b"", 0.0
    while True:
        data = rest + reader.recv(READ_BYTES)
        if len(data) == len(rest) or b'"problem":' in data or b"event: error" in data:
            raise BenchError(f"cut off after {count}: {data[-300:].decode(errors='replace')}")
        began = began or time.monotonic()
        count += data.count(_MARK)
        rest = data[1 - len(_MARK) :]
        _COUNT.pack_into(counter, 0, count)
        wanted = _COUNT.unpack_from(counter, _COUNT.size)[0]
        if wanted and count >= wanted:
            return time.monotonic() - began


def _reading(broker: Broker, settings: Settings, fields: str) -> Figures:
    """Out: messages per second that one reader gets, of a publisher that is a little ahead."""
    address = broker.http
    assert address is not None
    counter = mmap.mmap(-1, 2 * _COUNT.size)
    stream = Stream.repeat(Message(EXCHANGE, "bench", BODY))

    def consumed() -> int:
        found: int = _COUNT.unpack_from(counter)[0]
        return found

    with Crew() as crew:
        reading = crew.hire(_read, address, fields, counter)
        load = Load(settings.seconds, ahead=AHEAD)
        publishing = crew.hire(publish, broker.address, stream, load, consumed)
        spent = Spent(broker)
        crew.go()
        sent: Sent = publishing.result(settings.seconds + TIMEOUT_S)
        _COUNT.pack_into(counter, _COUNT.size, sent.count)
        # What it waits for may all be there already: one more message wakes it.
        _publish_one(address)
        took_s = reading.result(TIMEOUT_S)
        return Figures(
            sent.count / sent.seconds, sent.count / took_s, spent.cpu_us(sent.count),
            spent.peak_mb(),
        )  # fmt: skip


def _publish_one(address: Address) -> None:
    _ask(address, request(address, "POST", f"/endpoint/x/{EXCHANGE}", BODY), 202)


def _ask(address: Address, data: bytes, wanted: int) -> None:
    connection = HttpConnection(address)
    connection.ask(data, wanted)
    connection.close()


def _all_read(readers: list[socket.socket], count: int = 1) -> None:
    """Returns when each has got so many messages."""
    with selectors.DefaultSelector() as selector:
        for reader in readers:
            selector.register(reader, selectors.EVENT_READ, bytearray())
        left = len(readers)
        while left:
            ready = selector.select(TIMEOUT_S)
            if not ready:
                raise BenchError(f"{left} readers got less than {count} messages")
            for key, _ in ready:
                found = key.fileobj
                assert isinstance(found, socket.socket)
                key.data.extend(found.recv(READ_BYTES))
                if key.data.count(_MARK) >= count:
                    selector.unregister(found)
                    left -= 1


def waiting_readers(broker: Broker, _: Settings) -> Figures:
    """In: streams opened per second; then one message goes to all of them."""
    address = broker.http
    assert address is not None
    raise_open_files(READERS)
    warm = _open(address, _SSE)
    spent, start = Spent(broker), time.monotonic()
    readers: list[socket.socket] = []
    try:
        readers += [_open(address, _SSE) for _ in range(READERS)]
        rate = READERS / (time.monotonic() - start)
        each_kb = spent.growth_bytes() / READERS / 1e3
        start = time.monotonic()
        _publish_one(address)
        _all_read(readers)
        fan_out_s = time.monotonic() - start
    finally:
        for reader in (warm, *readers):
            reader.close()
    line = Figures(rate, READERS / fan_out_s, spent.cpu_us(READERS), spent.peak_mb())
    line.note = (
        f"{READERS:,} waiting: {each_kb:.1f} kB each; one message to all in {fan_out_s:.2f} s"
    )
    line.goals += [
        Goal(f"{KB_AT_MOST:g} kB each at most", each_kb <= KB_AT_MOST),
        Goal(f"{FAN_OUT_S_AT_MOST:g} s at most", fan_out_s <= FAN_OUT_S_AT_MOST),
    ]
    return line


def kept_readers(broker: Broker, _: Settings) -> Figures:
    """Out: messages per second that all readers of an exchange that keeps messages get together."""
    address = broker.http
    assert address is not None
    raise_open_files(KEPT_READERS)
    arguments = f"amqp.exchange_type=fanout&arg.x-persist-messages={KEPT_MESSAGES}"
    _ask(address, request(address, "PUT", f"/endpoint/x/{KEPT}?{arguments}"), 201)
    line = json.dumps({"body": BODY.decode()}).encode()
    batch = request(
        address, "POST", f"/endpoint/x/{KEPT}?hub.mode=batch",
        b"\n".join([line] * KEPT_MESSAGES), "application/x-ndjson",
    )  # fmt: skip
    readers = [_open(address, _SSE, KEPT) for _ in range(KEPT_READERS)]
    try:
        spent, start = Spent(broker), time.monotonic()
        _ask(address, batch, 202)
        _all_read(readers, KEPT_MESSAGES)
        took_s = time.monotonic() - start
    finally:
        for reader in readers:
            reader.close()
    count = KEPT_READERS * KEPT_MESSAGES
    figures = Figures(count / took_s, count / took_s, spent.cpu_us(count), spent.peak_mb())
    figures.note = f"{KEPT_MESSAGES} messages to {KEPT_READERS:,} readers in {took_s:.2f} s"
    figures.goals.append(Goal(f"{KEPT_S_AT_MOST:g} s at most", took_s <= KEPT_S_AT_MOST))
    return figures


SCENARIOS = (
    Scenario("stream-sse", partial(_reading, fields=_SSE), MESSAGES_PER_S, http=True),
    Scenario("stream-websocket", partial(_reading, fields=_WEBSOCKET), MESSAGES_PER_S, http=True),
    Scenario("stream-sse-10k", waiting_readers, fresh=True, http=True),
    Scenario("stream-kept-1k", kept_readers, fresh=True, http=True),
)
