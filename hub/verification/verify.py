"""Asks a callback whether it wants what somebody asked for in its name (WebSub 5.3).

The question goes out as every request of the hub does (`hub/sender/client.py`), and no connection
is kept.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass

from ..errors import VerificationFailed
from ..guard.domains import network_of, owner_of
from ..guard.egress import make_dialler
from ..guard.guard import Endpoint, Guard
from ..guard.lookups import Purpose
from ..request_limiter import HUB, Requester, RequestLimiter
from ..sender.client import HttpClient
from ..sender.connection import Limits
from ..sender.port import SendError, TimedOut
from ..settings import HubSettings
from ..subscriptions.intent import Intent, append_query

CHALLENGE_BYTES = 32
TURNS_PER_TARGET = 10
"""Of all turns, for one registered domain and for one address: no target can hold all of them."""
KEPT_SHARE = 5
"""Anonymous clients leave a fifth of the turns to users."""
LOOKUPS_PER_TURN = 4
"""A name that is looked up needs no turn yet: most of them don't take long."""
_FIELD = "hub.callback"


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes
    broken: str
    took_s: float


class Verifier:
    """Each question has a new challenge, which only that answer can carry."""

    def __init__(self, settings: HubSettings, guard: Guard) -> None:
        self._settings = settings
        self._guard = guard
        total = settings.verify_concurrency
        self.limiter = _limiter(total)
        # Apart, so that those who wait for an answer don't stand behind those who don't.
        self.patient_turns = _limiter(total)
        self._lookups = _limiter(total * LOOKUPS_PER_TURN)
        dialler = make_dialler(settings, guard, Purpose.VERIFY)
        limits = Limits(settings.max_response_bytes, keeps_body=True)
        self._client = HttpClient(guard, dialler, limits)

    async def verify(
        self, mode: str, intent: Intent, *, requester: Requester = HUB, is_patient: bool = False
    ) -> float:
        """How many seconds ago the callback was asked which has echoed the challenge with a 2xx.

        Raises `VerificationFailed` for any other answer, and `CallbackRefused` when its name
        resolves to an address that is not sent to. Who is patient waits for a turn as long as
        it takes; for others the wait is part of `verify_timeout_s`.
        """
        challenge = secrets.token_urlsafe(CHALLENGE_BYTES)
        url = question(mode, intent, challenge)
        answer = await self._ask(intent.callback, url, intent.basic_auth, requester, is_patient)
        if not 200 <= answer.status < 300:
            raise _failed(intent.callback, f"the callback answered {answer.status}")
        if answer.broken:
            raise _failed(intent.callback, f"the callback can't be asked: {answer.broken}")
        if answer.body != challenge.encode():
            raise _failed(intent.callback, "the callback did not answer with the challenge")
        return answer.took_s

    async def tell(self, callback: str, url: str, basic_auth: str | None = None) -> int:
        """The status that a URL of the callback answers, which is got for what it tells.

        Raises as `verify`; waits for its turn as long as it takes.
        """
        return (await self._ask(callback, url, basic_auth, HUB, is_patient=True)).status

    async def close(self) -> None:
        self._client.close()

    async def _ask(
        self,
        callback: str,
        url: str,
        basic_auth: str | None,
        requester: Requester,
        is_patient: bool,
    ) -> _Answer:
        endpoint = self._guard.check(callback)
        limiter = self.patient_turns if is_patient else self.limiter
        limit_s, loop = self._settings.verify_timeout_s, asyncio.get_running_loop()
        late = "too many verifications at once; it did not get its turn in time"
        try:
            async with asyncio.timeout(None if is_patient else limit_s) as bound:
                async with limiter.take(await self._targets(endpoint, requester), requester):
                    late = "the callback did not answer in time"
                    if is_patient:
                        bound.reschedule(loop.time() + limit_s)
                    return await self._get(url, basic_auth)
        except (TimeoutError, TimedOut) as error:
            raise _failed(callback, late, f"{limit_s:g} s") from error
        except SendError as error:
            raise _failed(callback, f"the callback can't be asked: {error}") from error

    async def _targets(self, endpoint: Endpoint, requester: Requester) -> list[str]:
        """Whose turns a question takes: those of its domain, and of each of its addresses."""
        owner = owner_of(endpoint.host)
        if endpoint.literal is not None:
            return [owner]
        async with self._lookups.take([owner], requester):
            found = await self._guard.resolve(endpoint.host, endpoint.port, Purpose.VERIFY)
        return list(dict.fromkeys([owner, *map(network_of, found)]))

    async def _get(self, url: str, basic_auth: str | None) -> _Answer:
        headers = {} if basic_auth is None else {"Authorization": f"Basic {basic_auth}"}
        loop = asyncio.get_running_loop()
        started_at = loop.time()
        got = await self._client.ask("GET", url, headers, b"", self._settings.verify_timeout_s)
        return _Answer(got.status, got.body, got.broken, loop.time() - started_at)


def _limiter(total: int) -> RequestLimiter:
    return RequestLimiter(total, TURNS_PER_TARGET, total // KEPT_SHARE)


def question(mode: str, intent: Intent, challenge: str) -> str:
    """The URL to get: the callback's own query, then ours (WebSub 5.3.1)."""
    parameters = [
        ("hub.mode", mode),
        ("hub.topic", intent.shown_topic),
        ("hub.challenge", challenge),
    ]
    if mode == "subscribe":
        parameters.append(("hub.lease_seconds", str(intent.lease_seconds)))
    if intent.verify_token is not None:
        parameters.append(("hub.verify_token", intent.verify_token))
    return append_query(intent.callback, *parameters)


def _failed(callback: str, reason: str, limit: str | None = None) -> VerificationFailed:
    return VerificationFailed(reason, field=_FIELD, value=callback, limit=limit)
