"""The HTTP client for the hub under test."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlencode, urljoin, urlsplit

import httpx

from .exchange import Reply
from .options import Options, is_loopback
from .results import Failed
from .transcript import Transcript

FORM = "application/x-www-form-urlencoded"
MAX_REDIRECTS = 3
_MOVED = (307, 308)


class HubClient:
    """Posts to the hub, shared by all checks; follows 307 and 308 (WebSub 5.1.2)."""

    def __init__(self, options: Options) -> None:
        self.url = options.hub
        auth = httpx.BasicAuth(options.user, options.password) if options.user else None
        self._client = httpx.AsyncClient(
            auth=auth,
            timeout=options.patience_s,
            # The proxy of the environment is not used for a hub on this machine.
            trust_env=not is_loopback(urlsplit(options.hub).hostname or ""),
            headers={"User-Agent": "warren-conformance"},
        )

    async def probe(self) -> int:
        """Returns the status of an empty request; raises `httpx.HTTPError` without a response."""
        answer = await self._client.post(self.url, content=b"", headers={"Content-Type": FORM})
        return answer.status_code

    async def post(self, fields: Iterable[tuple[str, str]], trace: Transcript) -> Reply:
        """Returns the response of the hub; raises `Failed` if there is none."""
        given = list(fields)
        try:
            reply = await self._follow(self.url, urlencode(given))
        except httpx.HTTPError as error:
            trace.sent(self.url, given, repr(error))
            raise Failed(f"the hub did not answer: {error!r}") from error
        trace.sent(self.url, given, str(reply))
        return reply

    async def _follow(self, url: str, body: str) -> Reply:
        for _ in range(MAX_REDIRECTS):
            answer = await self._client.post(url, content=body, headers={"Content-Type": FORM})
            location = answer.headers.get("Location")
            if answer.status_code not in _MOVED or location is None:
                break
            url = urljoin(url, location)
        return Reply(answer.status_code, answer.headers.get("Content-Type", ""), answer.text)

    async def close(self) -> None:
        await self._client.aclose()
