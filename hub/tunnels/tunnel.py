"""A tunnel: the polls and the pending requests of one label.

Requests are taken in the order in which they came, by the poll that has waited longest, so several
pollers take turns. A request is passed on once: only if the poll turns out to be gone before it was
written, the next poll gets it.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from ...core.clock import Clock
from .budget import ByteBudget
from .errors import (
    AnsweredRequest,
    NoApplicationReply,
    NoPoll,
    PollReplaced,
    ReleasedTunnel,
    TunnelError,
    TunnelFull,
    UnknownRequest,
    UnknownTunnel,
)
from .pending_request import Poll, TunnelRequest
from .registration import TunnelRegistration, has_token
from .reply import Reply
from .settings import TunnelSettings

MAX_ANSWERED: Final = 256
"""Ids of answered requests that are remembered, to tell a second reply from an unknown one."""


class Tunnel:
    """The polls and pending requests of one label. Belongs to a registration, which may change.
    `budget` is shared by all tunnels."""

    def __init__(
        self,
        registration: TunnelRegistration,
        settings: TunnelSettings,
        budget: ByteBudget,
        clock: Clock,
    ) -> None:
        self.registration = registration
        self.is_lapsed = False
        self.settings = settings
        self._budget = budget
        self._clock = clock
        self.request_count = 0
        """Requests that were passed to the application."""
        self._polls: dict[str, Poll] = {}
        """Those that wait, by id, the longest waiting first."""
        self._queue: deque[TunnelRequest] = deque()
        self._in_flight: dict[str, TunnelRequest] = {}
        self._former_digests: set[str] = set()
        """Of tokens under which requests in flight may have been passed on."""
        self._answered: dict[str, None] = {}
        self._idle_since_s = self._now_s()
        self._polled_at_s: float | None = None
        """When a poll waited last."""

    @property
    def poll_count(self) -> int:
        return len(self._polls)

    @property
    def queued_count(self) -> int:
        return len(self._queue)

    @property
    def in_flight_count(self) -> int:
        return len(self._in_flight)

    @property
    def has_request(self) -> bool:
        """Whether a poll would get a request at once."""
        return bool(self._queue) and len(self._in_flight) < self.settings.max_in_flight

    def idle_s(self) -> float:
        """Returns the seconds since its lease began to run; 0 while a poll waits, or a reply is
        awaited."""
        return 0.0 if self._polls or self._in_flight else self._now_s() - self._idle_since_s

    def touch(self) -> None:
        """Restarts the lease."""
        self._idle_since_s = self._now_s()

    # Requestors

    def ask(self, request: TunnelRequest) -> None:
        """Takes a request. Raises `TunnelFull`."""
        if len(self._queue) >= self.settings.max_queued:
            raise self._full("requests wait for a poll", self.settings.max_queued)
        self._budget.take(self.registration.account, len(request.message))
        self._queue.append(request)
        request.set_timer(self._poll_wait_s(), self._no_poll)
        self._dispatch()

    def withdraw(self, request: TunnelRequest) -> None:
        """Drops a request whose requestor is gone; one in flight waits for its reply, unheard."""
        request.answered = None
        if request in self._queue:
            self._queue.remove(request)
            self._leave(request)

    # Applications

    def require_room(self, poll_id: str) -> None:
        """Raises `TunnelFull` if no poll with this id can wait."""
        if len(self._polls) >= self.settings.max_polls and poll_id not in self._polls:
            raise self._full("polls wait", self.settings.max_polls)

    def wait(self, poll: Poll) -> None:
        """Gives the poll the next request, now or later; there must be room for it.

        A poll that waits at the same id ends: its connection is probably lost. A request that was
        passed on under that id and has no reply is lost too.
        """
        older = self._polls.pop(poll.id, None)
        if older is not None:
            older.end(PollReplaced("a later poll came at this Request URL", field="poll"))
        lost = self._in_flight.get(poll.id)
        if lost is not None:
            self._finish(lost, _no_reply("polled again and did not reply"))
        self._polls[poll.id] = poll
        self._dispatch()

    def leave(self, poll: Poll) -> None:
        """Ends the wait of a poll, if it waits."""
        if self._polls.get(poll.id) is poll:
            del self._polls[poll.id]
            self._polled_at_s = self._idle_since_s = self._now_s()

    def give_back(self, request: TunnelRequest) -> None:
        """Requeues a request whose poll was gone before it was written."""
        if self._in_flight.pop(request.id, None) is None:
            return
        if request.answered is None:
            self._leave(request)
            return
        self._queue.appendleft(request)
        request.set_timer(self._poll_wait_s(), self._no_poll)
        self._dispatch()

    def abandon(self, poll: Poll) -> None:
        """Gives up the requests of a poll whose replies can't come any more."""
        for request in [one for one in self._in_flight.values() if one.poll is poll]:
            self._finish(request, _no_reply("its connection has ended"))

    def request(self, request_id: str) -> TunnelRequest:
        """Returns the request that a reply is for. Raises `AnsweredRequest`, `UnknownRequest`."""
        found = self._in_flight.get(request_id)
        if found is not None:
            return found
        if request_id in self._answered:
            raise AnsweredRequest("has a reply already", field="request")
        raise UnknownRequest("is unknown, or its time is over", field="request")

    def reply(self, request: TunnelRequest, reply: Reply) -> None:
        """Answers a request with its reply."""
        if len(self._answered) >= MAX_ANSWERED:
            del self._answered[next(iter(self._answered))]
        self._answered[request.id] = None
        self._finish(request, reply)

    def change(self, wanted: TunnelRegistration) -> None:
        """Changes the registration. With another token all polls end, but what was passed on under
        the former one can be replied to."""
        former, self.registration = self.registration.digest, wanted
        if former != wanted.digest:
            self._former_digests.add(former)
            self.end_polls(_other_token(wanted.label))

    def refusal(self, digest: str) -> TunnelError | None:
        """Returns why a stream that began under the token with this digest gets no more requests;
        None if nothing has changed."""
        found = self.registration
        if found.is_released:
            return ReleasedTunnel(found.label)
        return None if found.digest == digest else _other_token(found.label)

    def takes_replies_with(self, token: str) -> bool:
        if not self._in_flight:
            self._former_digests.clear()
        digests = (self.registration.digest, *self._former_digests)
        return any(has_token(digest, token) for digest in digests)

    def end_polls(self, error: TunnelError | None) -> None:
        """Ends all polls, for an error or because the hub stops."""
        for poll in list(self._polls.values()):
            self.leave(poll)
            poll.end(error)

    def end_queue(self, error: TunnelError) -> None:
        """Answers the requests that no poll has taken."""
        for request in list(self._queue):
            self._expire(request, error)

    # Inside

    def _now_s(self) -> float:
        return self._clock.now_ms() / 1000

    def _dispatch(self) -> None:
        while self._queue and self._polls and len(self._in_flight) < self.settings.max_in_flight:
            request, (poll_id, poll) = self._queue.popleft(), next(iter(self._polls.items()))
            self.leave(poll)
            request.id, request.poll = poll_id, poll
            self._answered.pop(poll_id, None)
            self._in_flight[poll_id] = request
            self.request_count += 1
            request.set_timer(self.settings.reply_wait_s, self._no_reply_in_time)
            poll.take(request)

    def _poll_wait_s(self) -> float:
        settings = self.settings
        is_known = self._polls or (
            self._polled_at_s is not None
            and self._now_s() - self._polled_at_s < settings.recent_poll_s
        )
        return settings.seen_poll_wait_s if is_known else settings.poll_wait_s

    def _no_poll(self, request: TunnelRequest) -> None:
        self._expire(request, NoPoll("its application is not connected", field="label"))

    def _no_reply_in_time(self, request: TunnelRequest) -> None:
        self._finish(request, _no_reply(f"within {self.settings.reply_wait_s:g} s"))

    def _expire(self, request: TunnelRequest, error: TunnelError) -> None:
        if request in self._queue:
            self._queue.remove(request)
            self._leave(request)
            request.answer(error)

    def _finish(self, request: TunnelRequest, outcome: Reply | TunnelError) -> None:
        """Ends a request in flight."""
        if self._in_flight.get(request.id) is not request:
            return
        del self._in_flight[request.id]
        self._leave(request)
        request.answer(outcome)
        if request.poll is not None:
            request.poll.over(request)
        self._dispatch()

    def _leave(self, request: TunnelRequest) -> None:
        request.stop_timer()
        self._budget.give_back(self.registration.account, len(request.message))

    def _full(self, what: str, limit: int) -> TunnelFull:
        return TunnelFull(f"too many {what}", field="label", limit=str(limit))


def _other_token(label: str) -> UnknownTunnel:
    return UnknownTunnel("has another token now", field="name", value=label)


def _no_reply(how: str) -> NoApplicationReply:
    return NoApplicationReply(f"its application has not replied: {how}", field="label")
