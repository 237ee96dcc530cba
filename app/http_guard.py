"""The HTTP listener's protocol: uvicorn's, with limits on what a client may send.

llhttp already refuses bare LF, NUL, folded fields, and a Content-Length beside another one or
beside Transfer-Encoding. Measured to be missing, and added here: a bound on the head in bytes,
fields and time, exactly one Host, no trailer fields among the headers, and a bound on the body
in bytes and slowness. A refused connection is answered in turn, after the requests before it,
and then closed for writing; what the client still sends is read and dropped for a while, as
closing with unread bytes would reset the connection and could destroy the answer.

A read may hold thousands of pipelined requests. It is parsed in slices of few requests, and the
rest waits unparsed, with reading paused, until those have their answers.

An offer of WebSocket hands the connection over, if no earlier request waits for its answer;
other offers to upgrade are not taken.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import ClassVar, NoReturn

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from .access_log import REFUSED, log_request
from .body import too_large
from .host_field import is_host
from .local_requests import CYCLE
from .problems import MEDIA_TYPE, Problem
from .websocket import AcceptedUpgrade, Upgrades, is_offer

MAX_HEAD_BYTES = 16 * 1024
MAX_FIELDS = 100
MAX_STALL_S = 10.0
"""A whole head, and at least `MIN_BODY_BYTES` of a body, must come within this time."""
MIN_BODY_BYTES = 10 * 1024
LINGER_S = 5.0
MAX_DISCARDED_BYTES = 64 * 1024 * 1024
FRAMING_PER_BODY_BYTE = 8
"""A body in chunks of one byte has five; extensions of chunks, which nobody reads, may have more
than that only as far as a head may be long."""
MIN_SLICE_BYTES = 128
MAX_SLICE_BYTES = 4096
"""A slice ends after the first blank line between the two: no more heads than fit the lower."""


class _RefusedError(Exception):
    """Stops the parser; the answer is prepared already."""


class _Flow(FlowControl):
    """Reading stays paused while it is held, though every request that is served resumes it."""

    held = False

    def resume_reading(self) -> None:
        if not self.held:
            super().resume_reading()


class HttpGuard(HttpToolsProtocol):
    max_body_bytes: ClassVar[int]
    upgrades: ClassVar[Upgrades | None]
    logs_refusals: ClassVar[bool]
    flow: _Flow

    _reading = False
    """From the first byte of a request to the last of its body."""
    _in_head = False
    _offered = False
    """Between a head that offers to upgrade and its second reading."""
    _heads = 0
    _head_bytes = 0
    _unparsed_head_bytes = 0
    _fields = 0
    _hosts = 0
    """Host fields; one that names no host counts twice."""
    _body_bytes = 0
    _body_bytes_at_check = 0
    _framing_bytes = 0
    """Of a body: the sizes, extensions and ends of its chunks, and its trailer."""
    _refusal: bytes | None = None
    _refused_status = 0
    _given_up: RequestResponseCycle | None = None
    """Whose request the application has seen, and which is refused now."""
    _began_s = 0.0
    url = b""
    _handed_over = False
    _discarded_bytes = 0
    _unread = b""
    _unread_at = 0
    """What comes before was parsed."""
    _reads_on: asyncio.Handle | None = None
    _timer: asyncio.TimerHandle | None = None
    _active: RequestResponseCycle | None = None
    """Whose response is due now; with pipelining `cycle` is a later one."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _Flow(transport)
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._unset_keepalive_if_required()
        self._unread = b""
        if self._active is not None and not self._active.response_complete:
            self._active.disconnected = True
            self._active.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refusal is not None:
            self._discard(len(data))
            return
        self._unread = self._unread[self._unread_at :] + data
        self._unread_at = 0
        self._read_on()

    def _read_on(self) -> None:
        """Parses to the end of a head; what follows waits for another round of the loop."""
        self._reads_on = None
        heads = self._heads
        while self._unread and not self.pipeline and self._heads == heads:
            self._parse(self._next_slice())
            if self._is_over():
                return
        self.flow.held = bool(self._unread)
        if self._unread:
            self.flow.pause_reading()
            self._read_on_soon()
        elif not self.pipeline and (self.cycle is None or len(self.cycle.body) <= HIGH_WATER_LIMIT):
            self.flow.resume_reading()

    def _read_on_soon(self) -> None:
        """A request in the pipeline comes first; the end of the response before it calls again."""
        if self._reads_on is None and not self.pipeline:
            self._reads_on = self.loop.call_soon(self._read_on)

    def _next_slice(self) -> bytes:
        unread, start = self._unread, self._unread_at
        limit = start + MAX_SLICE_BYTES
        blank_line = unread.find(b"\r\n\r\n", start + MIN_SLICE_BYTES, limit)
        end = limit if blank_line < 0 else blank_line + 4
        if end < len(unread):
            self._unread_at = end
        else:
            self._unread = b""
        return unread[start:end]

    def _parse(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        in_body, heads = self._reading and not self._in_head, self._heads
        body_bytes = self._body_bytes
        self._feed(data)
        if self._is_over():
            return
        if self._reading and in_body and self._heads == heads:
            self._count_framing(len(data) - (self._body_bytes - body_bytes))
            if self._is_over():
                return
        if self._reading:
            all_is_head = self._in_head and not in_body and self._heads == heads
            self._watch_progress(len(data) if all_is_head else 0)
        elif self.cycle is None or self.cycle.response_complete:
            self._await_request()

    def _is_over(self) -> bool:
        return self._refusal is not None or self._handed_over or self.transport.is_closing()

    def _feed(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as stop:
                rest = data[stop.args[0] :]
                if self._may_hand_over():
                    self._upgrade(rest)
                    return
                data = self._head_without_offer() + rest
                self.parser = httptools.HttpRequestParser(self)
            except httptools.HttpParserError:
                self._parser_stopped()
                return

    def _head_without_offer(self) -> bytes:
        """An offer to upgrade is not taken and the request is served as it is (RFC 9110 7.8).

        The parser would take its body for the other protocol: Java's client offers h2c with
        every request, and its publishes would arrive empty. So the request is read again.
        """
        self._offered = False
        version = self.parser.get_http_version().encode()
        lines = [b" ".join((self.parser.get_method(), self.url, b"HTTP/" + version))]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def _may_hand_over(self) -> bool:
        answered = self.cycle is None or self.cycle.response_complete
        return self._wants_websocket() and answered and not self.pipeline

    def _wants_websocket(self) -> bool:
        return self.upgrades is not None and is_offer(
            self.parser.get_method(), self.parser.get_http_version(), self.headers
        )

    def _upgrade(self, rest: bytes) -> None:
        assert self.upgrades is not None
        try:
            upgrade = self.upgrades.accept(self.headers, self._peer(), self._path())
        except Problem as problem:
            self._prepare(problem)
            self._answer_refusal()
        else:
            self._hand_over(upgrade, rest + self._unread[self._unread_at :])

    def _hand_over(self, upgrade: AcceptedUpgrade, rest: bytes) -> None:
        self._handed_over = True
        self._unread = b""
        self._stop_timer()
        self._unset_keepalive_if_required()
        self.connections.discard(self)
        self.flow.held = False
        self.flow.resume_reading()
        self.transport.write(upgrade.response)
        self.transport.set_protocol(upgrade.protocol)
        upgrade.protocol.connection_made(self.transport)
        if rest:
            upgrade.protocol.data_received(rest)

    def _parser_stopped(self) -> None:
        """It gave up over its own rules, or over a refusal of ours."""
        if self._refusal is None:
            if self._reading and not self._in_head:
                self._give_up_cycle()
            self._prepare(Problem(400, "the request breaks the rules of HTTP/1.1"))
        self._answer_refusal()

    # Parser callbacks

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._reading = self._in_head = True
        self._began_s = self.loop.time()
        self._head_bytes = self._unparsed_head_bytes = self._fields = self._hosts = 0

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields += 1
        self._count_head(len(name) + len(value) + 4)
        if self._fields > MAX_FIELDS:
            self._refuse(Problem(431, f"the head has more than {MAX_FIELDS} fields"))
        if not self._in_head:
            return  # a trailer: the application has the headers already and must not get more
        if len(name) == 4 and name.lower() == b"host":
            self._hosts += 1 if is_host(value) else 2
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                self._refuse(Problem(400, "this is no proxy"))
            if self._wants_websocket():
                self._check_head()
            self._offered = True
            return
        self._heads += 1
        self._stop_timer()
        self._body_bytes = self._body_bytes_at_check = self._framing_bytes = 0
        self._check_head()
        super().on_headers_complete()
        self._in_head = False

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > self.max_body_bytes:
            self._give_up_cycle()
            self._refuse(too_large(self.max_body_bytes))
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._offered:
            return
        self._reading = False
        self._stop_timer()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._refusal is not None:
            self._answer_refusal()
        elif self._unread and not self.transport.is_closing():
            self._read_on_soon()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._active = cycle
        cycle.scope["extensions"] = {CYCLE: {"cycle": cycle}}
        super()._start_asgi_task(cycle, app)

    # Rules

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(_head_too_large())

    def _count_framing(self, size: int) -> None:
        self._framing_bytes += size
        if self._framing_bytes > MAX_HEAD_BYTES + FRAMING_PER_BODY_BYTE * self._body_bytes:
            self._give_up_cycle()
            rule = (
                f"around {self._body_bytes} bytes of the body are {self._framing_bytes} of chunks"
            )
            self._prepare(Problem(400, f"{rule}: their extensions are too long"))
            self._answer_refusal()

    def _check_head(self) -> None:
        version = self.parser.get_http_version()
        if version not in ("1.1", "1.0"):
            self._refuse(Problem(400, f"HTTP/{version} is not spoken here"))
        if self._hosts != 1 and not (version == "1.0" and self._hosts == 0):
            self._refuse(Problem(400, "the head must have exactly one Host field, with a host"))
        for name, value in self.headers:
            if name == b"content-length" and int(value) > self.max_body_bytes:
                self._refuse(too_large(self.max_body_bytes))
            if name == b"transfer-encoding" and (version == "1.0" or value.lower() != b"chunked"):
                self._refuse(Problem(400, "the only transfer encoding is chunked, in HTTP/1.1"))

    def _watch_progress(self, head_bytes: int) -> None:
        self._unparsed_head_bytes += head_bytes
        if self._unparsed_head_bytes > MAX_HEAD_BYTES:
            self._prepare(_head_too_large())
            self._answer_refusal()
        elif self._timer is None:
            self._timer = self.loop.call_later(MAX_STALL_S, self._check_progress)

    def _check_progress(self) -> None:
        self._timer = None
        progress = self._body_bytes - self._body_bytes_at_check
        self._body_bytes_at_check = self._body_bytes
        if self.flow.read_paused:
            self._watch_progress(0)  # it is our turn, not the client's
        elif self._in_head:
            self._prepare(Problem(408, f"the head was not complete within {MAX_STALL_S:.0f} s"))
            self._answer_refusal()
        elif progress < MIN_BODY_BYTES:
            self._give_up_cycle()
            rule = f"less than {MIN_BODY_BYTES} bytes of the body came within {MAX_STALL_S:.0f} s"
            self._prepare(Problem(408, rule))
            self._answer_refusal()
        else:
            self._watch_progress(0)

    def _await_request(self) -> None:
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Refusing

    def _refuse(self, problem: Problem) -> NoReturn:
        self._prepare(problem)
        raise _RefusedError

    def _prepare(self, problem: Problem) -> None:
        if self._refusal is None:
            self._refusal = _response(problem, self.server_state.default_headers)
            self._refused_status = problem.status
            self._unread = b""
            self.flow.held = False

    def _give_up_cycle(self) -> None:
        """Ends the request whose body is being read, so that it is not waited for."""
        if self.pipeline and self.pipeline[0][0] is self.cycle:
            self.pipeline.popleft()
        elif self.cycle.response_started:
            self._refusal = b""  # it has its answer, or half of one: nothing can be added
        else:
            self._given_up = self.cycle
        self.cycle.disconnected = True
        self.cycle.message_event.set()

    def _answer_refusal(self) -> None:
        """Writes the answer unless earlier requests still wait for theirs."""
        active = self._active
        waiting = active is not None and not (active.response_complete or active.disconnected)
        if waiting or self.pipeline or self.transport.is_closing():
            return
        self._stop_timer()
        self._unset_keepalive_if_required()
        self.flow.resume_reading()
        if self._refusal:
            self.transport.write(self._refusal)
            if self.logs_refusals:
                self._log_refusal(len(self._refusal.partition(b"\r\n\r\n")[2]))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._timer = self.loop.call_later(LINGER_S, self.transport.close)

    def _log_refusal(self, sent_bytes: int) -> None:
        """By the application's line about the request, if there will be one."""
        status = self._refused_status
        if self._given_up is not None:
            self._given_up.scope["extensions"][CYCLE][REFUSED] = (status, sent_bytes)
            return
        is_known = self._reading and self.url
        method = self.parser.get_method().decode("latin-1") if is_known else ""
        version = self.parser.get_http_version() if is_known else "1.1"  # as it is answered
        took_s = self.loop.time() - self._began_s if is_known else 0.0
        log_request(self._peer(), method, self._path(), version, status, sent_bytes, took_s)

    def _peer(self) -> str:
        return self.client[0] if self.client else ""

    def _path(self) -> bytes:
        """Of the request that is read, empty where it names none."""
        try:
            return httptools.parse_url(self.url).path or b""
        except httptools.HttpParserInvalidURLError:
            return b""

    def _discard(self, size: int) -> None:
        self._discarded_bytes += size
        if self._discarded_bytes > MAX_DISCARDED_BYTES:
            self.transport.close()


def guard(
    max_body_bytes: int, upgrades: Upgrades | None = None, *, logs_refusals: bool = False
) -> type[HttpGuard]:
    """The protocol class with this limit; uvicorn makes the instances.

    Without `upgrades` an offer of WebSocket is ignored like any other. With `logs_refusals` what
    is refused here is in the access log.
    """
    settings = {
        "max_body_bytes": max_body_bytes, "upgrades": upgrades, "logs_refusals": logs_refusals,
    }  # fmt: skip
    return type("BoundedHttpGuard", (HttpGuard,), settings)


def _head_too_large() -> Problem:
    return Problem(431, f"the head has more than {MAX_HEAD_BYTES} bytes")


def _response(problem: Problem, default_headers: list[tuple[bytes, bytes]]) -> bytes:
    body = problem.body()
    lines = [f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}".encode()]
    lines += [name + b": " + value for name, value in default_headers]
    lines += [f"{name}: {value}".encode() for name, value in problem.headers.items()]
    lines += [
        b"content-type: " + MEDIA_TYPE.encode(),
        b"content-length: " + str(len(body)).encode(),
        b"connection: close",
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
