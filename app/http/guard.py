"""The HTTP listener's protocol: uvicorn's, with limits on what a client may send.

llhttp refuses bare LF, NUL, folded fields, and a Content-Length beside another one or beside
Transfer-Encoding. Added here: a bound on the head in bytes, fields and time, exactly one Host, no
trailer fields among the headers, and a bound on the body in bytes and slowness.

A read may hold thousands of pipelined requests. It is parsed in slices of few requests; the rest
waits unparsed, with reading paused, until those have their responses.

An offer of WebSocket hands the connection over, if no earlier request waits for its response; other
offers to upgrade are ignored.

The module is long since the callbacks of one parser are one state machine, to be read whole.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ..access.local_requests import CYCLE
from ..logs.request_context import REQUEST_ID_HEADER, enter
from ..problems import Problem
from .access_log import REFUSED, log_request
from .disconnects import forget_gone, tell_gone
from .input import UnparsedInput
from .joined_writes import JoinedWrites
from .meter import RequestMeter
from .progress import ProgressTimer
from .refusal import LINGER_S, ErrorResponse
from .takeover import TAKEOVER, Successor
from .unread import UnreadTimer
from .websocket import AcceptedUpgrade, UpgradeRules, is_offer


@dataclass(frozen=True, slots=True)
class HttpRules:
    """The limits and options of the listener.

    Without `upgrades` an offer of WebSocket is ignored like any other. With `logs_refusals` refused
    requests are in the access log.
    """

    max_body_bytes: int
    upgrades: UpgradeRules | None = None
    logs_refusals: bool = False


class _Flow(FlowControl):
    """Keeps reading paused while `stays_paused`; each served request would resume it."""

    stays_paused = False

    def resume_reading(self) -> None:
        if not self.stays_paused:
            super().resume_reading()


class HttpGuard(HttpToolsProtocol):
    """One connection of the HTTP listener."""

    flow: _Flow

    def __init__(self, rules: HttpRules, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self.url = b""
        self._rules = rules
        self._meter = RequestMeter(rules.max_body_bytes)
        self._unparsed = UnparsedInput()
        self._progress: ProgressTimer
        self._unread = UnreadTimer()
        self._writes: JoinedWrites
        """Writes the response that is due now."""
        self._refused_in = copy_context()
        """The context of the log line about a refusal, with the id of the request."""
        self._active: RequestResponseCycle | None = None
        """The request whose response is due now; with pipelining `cycle` is a later one."""
        self._heads = 0
        self._began_s = 0.0
        self._is_offered = False
        """True between a head that offers to upgrade and its second reading."""
        self._offers_websocket = False
        """Whether the request offers WebSocket, on a path where the application decides."""
        self._is_undecided = False
        """True until the application has answered such a request: what follows may be frames."""
        self._is_handed_over = False
        self._is_refused = False
        self._refusal: ErrorResponse | None = None
        """None also if the refused request has its response, or half of it, already."""
        self._given_up: RequestResponseCycle | None = None
        """A refused request that the application has seen."""
        self._reads_on: asyncio.Handle | None = None
        self._linger: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _Flow(transport)
        self._progress = ProgressTimer(self.loop, self._meter, self._is_our_turn, self._refuse)
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._progress.stop()
        self._unread.stop()
        if self._linger is not None:
            self._linger.cancel()
        self._unset_keepalive_if_required()
        self._unparsed.clear()
        if self._active is not None and not self._active.response_complete:
            self._active.disconnected = True
            self._active.message_event.set()
            tell_gone(self._active.scope["extensions"])
        super().connection_lost(exc)

    # Writing

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread.start(self.transport)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread.resume(self.transport)

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    def _close(self) -> None:
        if not self.transport.is_closing():
            self._unread.close(self.transport)

    # Reading

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            if self._refusal is not None and not self._refusal.discard(len(data)):
                self._close()
            return
        self._unparsed.add(data)
        if self._reads_on is None:
            self._read_on()

    def _read_on(self) -> None:
        """Parses to the end of a head; what follows waits for another iteration of the loop."""
        self._reads_on = None
        heads = self._heads
        while self._unparsed and not self._must_wait() and self._heads == heads:
            self._parse(self._unparsed.next_slice())
            if self._is_over():
                return
        self.flow.stays_paused = bool(self._unparsed)
        if self._unparsed:
            self.flow.pause_reading()
            self._read_on_soon()
        elif not self.pipeline and (self.cycle is None or len(self.cycle.body) <= HIGH_WATER_LIMIT):
            self.flow.resume_reading()

    def _read_on_soon(self) -> None:
        """Continues reading unless it has to wait; the end of the response before calls this
        again."""
        if self._reads_on is None and not self._must_wait():
            self._reads_on = self.loop.call_soon(self._read_on)

    def _must_wait(self) -> bool:
        return bool(self.pipeline) or (self._is_undecided and not self._meter.is_reading)

    def _is_our_turn(self) -> bool:
        """Whether the client waits: nothing is read, or `100 Continue` has not been sent."""
        is_expected = self._meter.in_body and self.cycle.waiting_for_100_continue
        return self.flow.read_paused or is_expected

    def _parse(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        meter, heads, body_bytes = self._meter, self._heads, self._meter.body_bytes
        was_in_body = meter.in_body
        self._feed(data)
        if self._is_over():
            return
        if not meter.is_reading:
            if self.cycle is None or self.cycle.response_complete:
                self._await_request()
            return
        try:
            if self._heads == heads and was_in_body:
                meter.count_framing(len(data) - (meter.body_bytes - body_bytes))
            elif self._heads == heads and meter.in_head:
                meter.count_unparsed_head(len(data))
        except Problem as problem:
            self._refuse(problem)
        else:
            self._progress.start()

    def _is_over(self) -> bool:
        return self._is_refused or self._is_handed_over or self.transport.is_closing()

    def _feed(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as stop:
                rest = data[stop.args[0] :]
                if self._may_hand_over():
                    if not self._is_for_application():
                        self._upgrade(rest)
                        return
                    self._offers_websocket = True
                    self._unparsed.put_back(rest)
                    rest = b""
                data = self._head_without_offer() + rest
                self.parser = httptools.HttpRequestParser(self)
            except httptools.HttpParserError as error:
                self._refuse(_problem_of(error))
                return

    # Upgrades

    def _head_without_offer(self) -> bytes:
        """Returns the head without its offer to upgrade, so that the request is served as it is
        (RFC 9110 7.8).

        The parser would take its body for the other protocol: Java's client offers h2c with every
        request, and its publishes would arrive empty.
        """
        self._is_offered = False
        version = self.parser.get_http_version().encode()
        lines = [b" ".join((self.parser.get_method(), self.url, b"HTTP/" + version))]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def _may_hand_over(self) -> bool:
        answered = self.cycle is None or self.cycle.response_complete
        return self._wants_websocket() and answered and not self.pipeline

    def _is_for_application(self) -> bool:
        upgrades = self._rules.upgrades
        return upgrades is not None and upgrades.is_for_application(self._path(), self.headers)

    def _wants_websocket(self) -> bool:
        return self._rules.upgrades is not None and is_offer(
            self.parser.get_method(), self.parser.get_http_version(), self.headers
        )

    def _upgrade(self, rest: bytes) -> None:
        assert self._rules.upgrades is not None
        try:
            upgrade = self._rules.upgrades.accept(self.headers, self._peer(), self._path())
        except Problem as problem:
            self._refuse(problem)
        else:
            self._hand_over(upgrade, rest + self._unparsed.take_all())

    def _hand_over(self, upgrade: AcceptedUpgrade, rest: bytes) -> None:
        self.transport.write(upgrade.response)
        self._give_to(upgrade.protocol, rest)

    def _give_to(self, protocol: asyncio.Protocol, rest: bytes) -> None:
        self._is_handed_over = True
        self._unread.stop()
        if self._reads_on is not None:
            self._reads_on.cancel()
        self._progress.stop()
        self._unset_keepalive_if_required()
        self.connections.discard(self)
        self.flow.stays_paused = False
        self.flow.resume_reading()
        del self._progress  # The two refer to each other.
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        if rest:
            protocol.data_received(rest)

    def _successor(self) -> Successor | None:
        """Returns what serves HTTP on the connection again after a takeover.

        None if requests behind this one were parsed or refused already: their client repeats them
        when the connection is closed.
        """
        if self.pipeline or self._is_refused:
            return None
        make = partial(
            HttpGuard,
            self._rules,
            config=self.config,
            server_state=self.server_state,
            app_state=self.app_state,
        )
        return Successor(make)

    def _take_over(self, protocol: asyncio.Protocol) -> None:
        """Gives the connection of the request that is being answered to another protocol, as the
        application asks for it (`takeover.py`)."""
        assert self._active is not None
        self._active.response_started = self._active.response_complete = True
        self._writes.flush()
        self._release_cycle()
        self.parser = None  # type: ignore[assignment]  # The two refer to each other.
        self._give_to(protocol, self._unparsed.take_all())

    # Callbacks of the parser; `_feed` catches what they raise.

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._meter.begin()
        self._began_s = self.loop.time()

    def on_url(self, url: bytes) -> None:
        self._meter.count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._meter.count_field(name, value)
        if self._meter.in_head:  # the application must not get the fields of a trailer
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise Problem(400, "CONNECT is not supported: this is not a proxy")
            if self._wants_websocket():
                self._check_head()
            self._is_offered = True
            return
        self._heads += 1
        self._progress.stop()
        self._check_head()
        super().on_headers_complete()
        self._meter.begin_body()

    def _check_head(self) -> None:
        self._meter.check_head(self.parser.get_http_version(), self.headers)

    def on_body(self, body: bytes) -> None:
        self._meter.count_body(len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._is_offered:
            return
        self._meter.end()
        self._progress.stop()
        super().on_message_complete()

    # Callbacks of requests

    def on_response_complete(self) -> None:
        self._writes.flush()  # of a response to HEAD nothing follows the head
        self._release_cycle()
        self._is_undecided = False
        super().on_response_complete()
        if self.transport.is_closing():  # by the request or the response
            self._unread.close(self.transport)
        if self._is_refused:
            self._answer_refusal()
        elif self._unparsed and not self.transport.is_closing():
            self._read_on_soon()

    def _release_cycle(self) -> None:
        """Ends the reference of a scope to its cycle, which has the scope: the garbage collector
        would have to find both."""
        assert self._active is not None
        self._active.scope["extensions"][CYCLE].pop("cycle", None)
        forget_gone(self._active.scope["extensions"])

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._active = cycle
        self._writes = JoinedWrites(self.transport)
        cycle.transport = cast(asyncio.Transport, self._writes)
        offers_websocket, self._offers_websocket = self._offers_websocket, False
        self._is_undecided = offers_websocket
        cycle.scope["extensions"] = {
            CYCLE: {"cycle": cycle},
            TAKEOVER: {
                "take_over": self._take_over,
                "offers_websocket": offers_websocket,
                "successor": self._successor if cycle.keep_alive else None,
            },
        }
        super()._start_asgi_task(cycle, app)

    def _await_request(self) -> None:
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    # Refusing

    def _refuse(self, problem: Problem) -> None:
        self._is_refused = True
        self._progress.stop()
        self._unparsed.clear()
        self.flow.stays_paused = False
        if not self._meter.in_body or self._give_up_cycle():
            self._refusal = ErrorResponse(problem, self._refusal_headers())
        self._answer_refusal()

    def _refusal_headers(self) -> list[tuple[bytes, bytes]]:
        """Returns the fields of every response; the id is that of the request that is given up, if
        the application has seen it."""
        if self._given_up is not None:
            return self._given_up.default_headers
        own_id = self._refused_in.run(enter, ()).request.encode()
        return [*self.server_state.default_headers, (REQUEST_ID_HEADER, own_id)]

    def _give_up_cycle(self) -> bool:
        """Ends the request whose body is being read; returns whether it can have a response."""
        has_begun = self.cycle.response_started
        if self.pipeline and self.pipeline[0][0] is self.cycle:
            self.pipeline.popleft()
        elif not has_begun:
            self._given_up = self.cycle
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        return not has_begun

    def _answer_refusal(self) -> None:
        """Writes the response unless earlier requests still wait for theirs."""
        active = self._active
        waiting = active is not None and not (active.response_complete or active.disconnected)
        if waiting or self.pipeline or self.transport.is_closing() or self._linger is not None:
            return
        self._unset_keepalive_if_required()
        self.flow.resume_reading()
        if self._refusal is not None:
            self.transport.write(self._refusal.response())
            if self._rules.logs_refusals:
                size = len(self._refusal.body)
                self._refused_in.run(self._log_refusal, self._refusal.status, size)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._linger = self.loop.call_later(LINGER_S, self._close)

    def _log_refusal(self, status: int, sent_bytes: int) -> None:
        """Logs the refusal, or adds it to the application's log line about the request."""
        if self._given_up is not None:
            self._given_up.scope["extensions"][CYCLE][REFUSED] = (status, sent_bytes)
            return
        is_known = self._meter.is_reading and self.url
        method = self.parser.get_method().decode("latin-1") if is_known else ""
        version = self.parser.get_http_version() if is_known else "1.1"  # of the response
        took_s = self.loop.time() - self._began_s if is_known else 0.0
        log_request(self._peer(), method, self._path(), version, status, sent_bytes, took_s)

    def _peer(self) -> str:
        return self.client[0] if self.client else ""

    def _path(self) -> bytes:
        """Returns the path of the request being read, empty if it has none."""
        try:
            return httptools.parse_url(self.url).path or b""
        except httptools.HttpParserInvalidURLError:
            return b""


def _problem_of(error: httptools.HttpParserError) -> Problem:
    raised_by_callback = error.__context__
    if isinstance(raised_by_callback, Problem):
        return raised_by_callback
    return Problem(400, "the request is not valid HTTP/1.1")
