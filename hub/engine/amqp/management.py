"""The cluster's management API: what AMQP does not tell."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

import aiohttp

from ..errors import EngineUnavailable
from .address import EngineAddress
from .failures import reason
from .transport import tls_context

TIMEOUT_S: Final = 10.0

log = logging.getLogger(__name__)


class ManagementRefused(EngineUnavailable):
    """The API answers, but not to this user."""


class Management:
    """Reads from the first node that answers."""

    def __init__(self, address: EngineAddress) -> None:
        self._urls = list(address.management)
        self._login = aiohttp.BasicAuth(address.user, address.password, "utf-8")
        self._tls = tls_context(address)
        self._session: aiohttp.ClientSession | None = None

    async def get(self, *names: str, columns: str = "") -> Any:
        """Returns the document below `/api`, at a path of these names; None if there is none.

        Raises `EngineUnavailable`.
        """
        return await self._ask("GET", names, query=f"?columns={columns}" if columns else "")

    async def list(self, *names: str, columns: str = "") -> Sequence[Any]:
        """Returns a list that there always is: one that is missing is no empty one.

        Raises `EngineUnavailable`.
        """
        found = await self.get(*names, columns=columns)
        if not isinstance(found, list):
            path = "/api/" + "/".join(names)
            raise EngineUnavailable(f"RabbitMQ's management API has no list at {path}")
        return found

    async def close_connections(self, client_name: str, reason: str) -> None:
        """Closes the connections to which their client has given this name.

        Raises `EngineUnavailable`.
        """
        found = await self.list("connections", columns="name,user_provided_name")
        names = [one["name"] for one in found if one.get("user_provided_name") == client_name]
        for name in names:
            log.warning("closing connection %s: %s", name, reason)
            await self._ask("DELETE", ("connections", name), headers={"X-Reason": reason})

    async def _ask(
        self, method: str, names: Sequence[str], *, query: str = "", **options: Any
    ) -> Any:
        """Asks the first node that answers."""
        path = "/api/" + "/".join(quote(name, safe="") for name in names)
        failure = ""
        refused: ManagementRefused | None = None
        for url in tuple(self._urls):
            try:
                return await self._ask_at(method, url + path + query, **options)
            except ManagementRefused as error:
                # A node that has just started may not know the users yet: others are asked too.
                refused = error
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                failure = f"{url}: {reason(error)}"
            self._urls.append(self._urls.pop(0))
        raise refused or EngineUnavailable(
            f"RabbitMQ's management API can't be reached ({failure})"
        )

    async def _ask_at(self, method: str, url: str, **options: Any) -> Any:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
            connector = aiohttp.TCPConnector(ssl=self._tls or True)
            self._session = aiohttp.ClientSession(
                auth=self._login, timeout=timeout, connector=connector
            )
        from yarl import URL

        async with self._session.request(method, URL(url, encoded=True), **options) as response:
            if response.status == 404:
                return None
            if response.status in (401, 403):
                text = f"{url} answers {response.status}: the user needs the tag administrator"
                raise ManagementRefused(text)
            response.raise_for_status()
            return await response.json() if response.status == 200 else None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(0)
