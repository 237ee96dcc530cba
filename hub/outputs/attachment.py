"""Declares and binds the queues of outputs, as their sources and permissions are now."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.errors import ChannelError
from ..engine.port import Engine
from ..owner_rights import SubscriberRights
from .output import Output, OutputBinding
from .sources import bindings

if TYPE_CHECKING:
    from .repository import OutputRepository

log = logging.getLogger(__name__)


class QueueAttachment:
    """Declares, binds and deletes the queues of outputs. Its methods are called for one output at a
    time."""

    def __init__(
        self,
        engine: Engine,
        rights: SubscriberRights,
        rows: Callable[[], Awaitable[OutputRepository]],
    ) -> None:
        self._engine = engine
        self._rights = rights
        self._rows = rows

    async def attach(self, output: Output) -> Output:
        """Stores the output; declares its queue, binds it to its sources, and to nothing else.

        The row lists what is bound before and after: a crash between leaves no binding that nobody
        knows. What is bound already stays so, and no message is lost. Raises `ChannelError` and
        `StorageFailed`.
        """
        vhost = output.key.vhost
        wanted = await bindings(
            self._engine, self._rights, output.owner, vhost, output.definition
        )  # fmt: skip
        rows = await self._rows()
        await rows.put(replace(output, bound=output.bound | wanted))
        await self._engine.declare_queue(vhost, output.queue)
        for bound in sorted(wanted):
            await self._bind(output, bound)
        for bound in sorted(output.bound - wanted):
            await self._unbind(output, bound)
        attached = replace(output, bound=wanted)
        if output.bound != wanted:
            await rows.put(attached)
        return attached

    async def detach(self, output: Output) -> None:
        """Deletes its queue, if it is there."""
        with suppress(ChannelError):
            await self._engine.delete_queue(output.key.vhost, output.queue.name)

    async def _bind(self, output: Output, bound: OutputBinding) -> None:
        """Binds, unless the exchange was deleted meanwhile: its next declaration binds."""
        try:
            await self._engine.bind(output.key.vhost, output.binding(bound))
        except ChannelError as error:
            log.info("%s: source missing: %s", output.key, error)

    async def _unbind(self, output: Output, bound: OutputBinding) -> None:
        try:
            await self._engine.unbind(output.key.vhost, output.binding(bound))
        except ChannelError as error:
            log.info("%s: source deleted: %s", output.key, error)
