"""The cluster's management API: what AMQP does not tell."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

import aiohttp

from ..errors import EngineUnavailable
from .address import EngineAddress

TIMEOUT_S: Final = 10.0


class ManagementRefused(EngineUnavailable):
    """The API answers, but not to this user."""


class Management:
    """Reads from the first node that answers."""

    def __init__(self, address: EngineAddress) -> None:
        self._urls = list(address.management)
        self._login = aiohttp.BasicAuth(address.user, address.password, "utf-8")
        self._session: aiohttp.ClientSession | None = None

    async def get(self, *names: str, columns: str = "") -> Any:
        """Returns the document below `/api`, at a path of these names; None if there is none.

        Raises `EngineUnavailable`.
        """
        path = "/api/" + "/".join(quote(name, safe="") for name in names)
        query = f"?columns={columns}" if columns else ""
        failure = ""
        for url in tuple(self._urls):
            try:
                return await self._get_from(url + path + query)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                failure = f"{url}: {error or 'no answer'}"
                self._urls.append(self._urls.pop(0))
        raise EngineUnavailable(f"RabbitMQ's management API can't be reached ({failure})")

    async def list(self, *names: str, columns: str = "") -> Sequence[Any]:
        """Returns a list that there always is: one that is missing is no empty one.

        Raises `EngineUnavailable`.
        """
        found = await self.get(*names, columns=columns)
        if not isinstance(found, list):
            path = "/api/" + "/".join(names)
            raise EngineUnavailable(f"RabbitMQ's management API has no list at {path}")
        return found

    async def _get_from(self, url: str) -> Any:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
            self._session = aiohttp.ClientSession(auth=self._login, timeout=timeout)
        from yarl import URL

        async with self._session.get(URL(url, encoded=True)) as response:
            if response.status == 404:
                return None
            if response.status in (401, 403):
                text = f"{url} answers {response.status}: the user needs the tag administrator"
                raise ManagementRefused(text)
            response.raise_for_status()
            return await response.json()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(0)
