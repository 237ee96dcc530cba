"""RSS cloud: asks the server that a feed names to announce its changes (RSS 2.0, `cloud`).

Of its protocols http-post and xml-rpc are spoken, and not soap. With xml-rpc, the server announces
to the address that the request comes from: it can't be told a domain.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from ...core.errors import WarrenError
from ..errors import CallbackRefused, NotResolved
from ..formats.read_feed import Cloud
from ..guard.guard import Guard
from ..sender.port import SendError
from ..settings import HubSettings
from ..upstream.upstream import CALLBACK_PATH
from .feed import Feed

if TYPE_CHECKING:
    from ..sender.client import HttpClient

HTTP_POST, XML_RPC = "http-post", "xml-rpc"
PROTOCOLS = frozenset({HTTP_POST, XML_RPC})
TAKEN = (
    '<?xml version="1.0"?>\n<methodResponse><params><param><value><boolean>1</boolean></value>'
    "</param></params></methodResponse>\n"
)
"""The answer to an announcement of xml-rpc."""
CLOUD_PREFIX = "cloud."
"""The beginning of the last segment of the path that is announced to; the feed's id follows, which
is secret."""
_FORM = "application/x-www-form-urlencoded"
_REGISTER, _NOTIFY = "rssCloud.pleaseNotify", "rssCloud.notify"
_REFUSED = re.compile(rb"success=[\"']false|<fault>|<boolean>\s*0")
_PORTS = {"http": 80, "https": 443}


class CloudFailed(WarrenError):
    """The server did not accept the registration."""


class CloudClient:
    """Registers at clouds; `make_client` makes the HTTP client at its first use."""

    def __init__(
        self,
        settings: HubSettings,
        guard: Guard,
        client: Callable[[], Awaitable[HttpClient]],
    ) -> None:
        self._settings = settings
        self._guard = guard
        self._client = client

    async def register(self, feed: Feed, cloud: Cloud) -> None:
        """Asks for announcements during the next 25 hours. Raises `CloudFailed`.

        With our domain in it, the server asks back with a challenge before it answers.
        """
        url = f"http://{cloud.domain}:{cloud.port}{cloud.path}"
        content_type, body = self._request(feed, cloud)
        fields = {"Content-Type": content_type}
        limit_s = self._settings.fetch_timeout_s
        try:
            self._guard.check(url)
            async with asyncio.timeout(limit_s):
                client = await self._client()
                answer = await client.ask("POST", url, fields, body, limit_s)
        except TimeoutError as error:
            raise CloudFailed(f"the cloud {url} did not answer within {limit_s:g} s") from error
        except (CallbackRefused, SendError, NotResolved) as error:
            raise CloudFailed(f"the cloud {url} can't be asked: {error}") from error
        if not 200 <= answer.status < 300 or _REFUSED.search(answer.body):
            raise CloudFailed(f"the cloud {url} refused, with {answer.status}")

    def _request(self, feed: Feed, cloud: Cloud) -> tuple[str, bytes]:
        """Returns type and content of the request, by the protocol."""
        base = urlsplit(self._settings.base_urls[0])
        port = base.port or _PORTS.get(base.scheme, 80)
        path = f"{base.path}{CALLBACK_PATH}{CLOUD_PREFIX}{feed.id}"
        if cloud.protocol == XML_RPC:
            from xmlrpc.client import dumps  # rarely needed, and a server would start later

            asked = (_NOTIFY, port, path, XML_RPC, [feed.url])
            return "text/xml", dumps(asked, cloud.procedure or _REGISTER).encode()
        form = {
            "notifyProcedure": "", "protocol": HTTP_POST, "domain": base.hostname or "",
            "port": str(port), "path": path, "url1": feed.url,
        }  # fmt: skip
        return _FORM, urlencode(form).encode()
