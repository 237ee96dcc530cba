"""A DNS server on loopback, over UDP and TCP (RFC 1035)."""

from __future__ import annotations

import contextlib
import socketserver
import struct
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

TYPES = {1: 4, 28: 6}
"""A and AAAA, by number, with the version of their addresses."""
_NO_ERROR, _NO_SUCH_NAME = 0, 3
_TRUNCATED = 0x0200
_UDP_BYTES = 512


@dataclass
class Name:
    addresses: list[str]
    ttl_s: int = 60
    silent: tuple[int, ...] = ()
    """Types of which questions get no answer."""


SILENT = Name([], silent=tuple(TYPES))


@dataclass
class Zone:
    """`names` may begin with `*.`; `asked` counts questions of type A by name."""

    port: int = 0
    names: dict[str, Name] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)

    @property
    def server(self) -> str:
        return f"127.0.0.1:{self.port}"

    def find(self, name: str) -> Name | None:
        return self.names.get(name) or self.names.get(f"*.{name.partition('.')[2]}")

    def answer(self, question: bytes, limit: int) -> bytes | None:
        name, kind, end = _read_question(question)
        if kind == 1:
            self.asked[name] += 1
        found = self.find(name)
        if found is None:
            return _reply(question, end, _NO_SUCH_NAME, [])
        if kind in found.silent:
            return None
        records = [
            struct.pack("!HHHIH", 0xC00C, kind, 1, found.ttl_s, len(packed)) + packed
            for packed in (ip_address(text).packed for text in found.addresses)
            if TYPES.get(kind) == (4 if len(packed) == 4 else 6)
        ]
        whole = _reply(question, end, _NO_ERROR, records)
        return whole if len(whole) <= limit else _reply(question, end, _TRUNCATED, [])


@contextlib.contextmanager
def dns(names: Mapping[str, list[str] | Name], port: int = 0) -> Iterator[Zone]:
    """Serves `names`, to which more may be added while it runs."""
    known = {name: one if isinstance(one, Name) else Name(one) for name, one in names.items()}
    zone = Zone(names=known)

    class Datagram(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            data, sock = self.request
            answer = zone.answer(data, _UDP_BYTES)
            if answer is not None:
                sock.sendto(answer, self.client_address)

    class Stream(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while head := self.rfile.read(2):
                answer = zone.answer(self.rfile.read(*struct.unpack("!H", head)), 65_535)
                if answer is not None:
                    self.wfile.write(struct.pack("!H", len(answer)) + answer)

    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(_Tcp(("127.0.0.1", port), Stream))
        zone.port = tcp.server_address[1]
        udp = stack.enter_context(_Udp(("127.0.0.1", zone.port), Datagram))
        for server in (udp, tcp):
            thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
        yield zone


class _Udp(socketserver.UDPServer):
    """One question after the other: none takes long."""

    allow_reuse_address = True


class _Tcp(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False


def _read_question(message: bytes) -> tuple[str, int, int]:
    """Name, type, and where the question ends."""
    labels, at = [], 12
    while length := message[at]:
        labels.append(message[at + 1 : at + 1 + length].decode("latin-1").lower())
        at += 1 + length
    (kind,) = struct.unpack_from("!H", message, at + 1)
    return ".".join(labels), kind, at + 5


def _reply(question: bytes, end: int, code: int, records: list[bytes]) -> bytes:
    flags = 0x8180 | code  # a response, recursion asked for and available
    head = question[:2] + struct.pack("!HHHHH", flags, 1, len(records), 0, 0)
    return head + question[12:end] + b"".join(records)
