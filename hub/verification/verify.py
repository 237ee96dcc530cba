"""Verifies the intent of a callback: whether it wants to subscribe or unsubscribe (WebSub 5.3).

No connection is kept after a verification.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass

from ..errors import VerificationFailed
from ..guard.callback_url import Endpoint
from ..guard.callbacks import CallbackGuard
from ..guard.domains import network_of, owner_of
from ..guard.egress import make_dialler
from ..guard.guard import Guard
from ..guard.lookups import Purpose
from ..request_limiter import HUB, Requester, RequestLimiter
from ..sender.client import HttpClient
from ..sender.port import LocalClient, SendError, TimedOut
from ..sender.response import ResponseLimits
from ..settings import HubSettings
from ..subscriptions.intent import Intent, append_query

CHALLENGE_BYTES = 32
SLOTS_PER_TARGET = 10
"""The slots for one registered domain, and for one address, so no target can occupy all."""
RESERVED_SHARE = 5
"""One slot of so many is reserved for users, and not for anonymous clients."""
LOOKUPS_PER_SLOT = 4
"""Lookups at a time for each slot: they come before a slot, and most of them are short."""
_FIELD = "hub.callback"


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes
    broken: str
    took_s: float


class Verifier:
    """Sends each callback a new challenge, which its answer has to repeat.

    `local` asks the callbacks that are in this process.
    """

    def __init__(
        self, settings: HubSettings, guard: Guard, local: LocalClient | None = None
    ) -> None:
        self._settings = settings
        self._callbacks = CallbackGuard(guard) if local is None else CallbackGuard(guard, local.has)
        total = settings.verify_concurrency
        self.limiter = _limiter(total)
        # Separate slots, so that clients who wait for an answer do not wait for the others.
        self.patient_limiter = _limiter(total)
        self._lookups = _limiter(total * LOOKUPS_PER_SLOT)
        dialler = make_dialler(settings, guard, Purpose.VERIFY)
        limits = ResponseLimits(settings.max_response_bytes, keeps_body=True)
        self._client = HttpClient(guard, dialler, limits)
        self._local = local

    async def verify(
        self, mode: str, intent: Intent, *, requester: Requester = HUB, is_patient: bool = False
    ) -> float:
        """Returns how many seconds the callback took to repeat the challenge with a 2xx.

        Raises `VerificationFailed` for any other answer, and `CallbackRefused` for a name with an
        address that requests are not sent to. With `is_patient` the wait for a slot has no limit;
        otherwise it is part of `verify_timeout_s`.
        """
        challenge = secrets.token_urlsafe(CHALLENGE_BYTES)
        url = question(mode, intent, challenge)
        answer = await self._ask(intent.callback, url, intent.basic_auth, requester, is_patient)
        if not 200 <= answer.status < 300:
            raise _failed(intent.callback, f"the callback answered {answer.status}")
        if answer.broken:
            raise _failed(intent.callback, f"the callback can't be reached: {answer.broken}")
        if answer.body != challenge.encode():
            raise _failed(intent.callback, "the callback did not answer with the challenge")
        return answer.took_s

    async def notify(self, callback: str, url: str, basic_auth: str | None = None) -> int:
        """Sends a GET to a URL of the callback, and returns the status of the answer.

        Raises as `verify`; the wait for a slot has no limit.
        """
        return (await self._ask(callback, url, basic_auth, HUB, is_patient=True)).status

    async def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    async def _ask(
        self,
        callback: str,
        url: str,
        basic_auth: str | None,
        requester: Requester,
        is_patient: bool,
    ) -> _Answer:
        endpoint = self._callbacks.check(callback)
        limiter = self.patient_limiter if is_patient else self.limiter
        limit_s, loop = self._settings.verify_timeout_s, asyncio.get_running_loop()
        late = "too many verifications at once; none was free in time"
        try:
            async with asyncio.timeout(None if is_patient else limit_s) as bound:
                async with limiter.take(await self._targets(endpoint, requester), requester):
                    late = "the callback did not answer in time"
                    if is_patient:
                        bound.reschedule(loop.time() + limit_s)
                    return await self._get(endpoint, url, basic_auth)
        except (TimeoutError, TimedOut) as error:
            raise _failed(callback, late, f"{limit_s:g} s") from error
        except SendError as error:
            raise _failed(callback, f"the callback can't be reached: {error}") from error

    async def _targets(self, endpoint: Endpoint, requester: Requester) -> list[str]:
        """Returns the targets whose slots it needs: its domain, and each of its addresses."""
        owner = owner_of(endpoint.host)
        if endpoint.literal is not None:
            return [owner]
        async with self._lookups.take([owner], requester):
            found = await self._callbacks.resolve(endpoint, Purpose.VERIFY)
        return list(dict.fromkeys([owner, *map(network_of, found)]))

    async def _get(self, endpoint: Endpoint, url: str, basic_auth: str | None) -> _Answer:
        local = self._local
        client = self._client if local is None or not local.has(endpoint.host) else local
        headers = {} if basic_auth is None else {"Authorization": f"Basic {basic_auth}"}
        loop = asyncio.get_running_loop()
        started_at = loop.time()
        got = await client.ask("GET", url, headers, b"", self._settings.verify_timeout_s)
        return _Answer(got.status, got.body, got.broken, loop.time() - started_at)


def _limiter(total: int) -> RequestLimiter:
    return RequestLimiter(total, SLOTS_PER_TARGET, total // RESERVED_SHARE)


def question(mode: str, intent: Intent, challenge: str) -> str:
    """Returns the URL to request: the callback with its own query, then ours (WebSub 5.3.1)."""
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
