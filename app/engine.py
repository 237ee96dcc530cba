"""Connects to the RabbitMQ cluster that the settings name as the engine."""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..core.broker import Broker
from ..core.errors import ConfigError
from ..hub.engine.amqp.address import EngineAddress
from ..hub.engine.errors import EngineUnavailable
from .commands.exit_codes import CommandError, Unreachable

if TYPE_CHECKING:
    from ..hub.engine.amqp.engine import AmqpEngine


log = logging.getLogger(__name__)


LISTED_WITHIN_S: Final = 10
"""RabbitMQ's nodes collect what they list every five seconds."""


class EngineUnfit(CommandError):
    """The cluster is there, and can't keep the hub's promises."""


async def connect(
    address: EngineAddress, broker: Broker, hub_id: str, on_taken_over: Callable[[], None]
) -> AmqpEngine:
    """Returns the engine once it is checked, with what the cluster has.

    Raises `ConfigError` if the client library is missing, `Unreachable`, and `EngineUnfit` after a
    line for each reason.
    """
    try:
        from ..hub.engine.amqp.engine import AmqpEngine
    except ModuleNotFoundError as error:
        text = f"the engine needs the package {error.name}: pip install 'warrenmq[cluster]'"
        raise ConfigError(text) from error
    try:
        engine = AmqpEngine(address, broker, hub_id, on_taken_over)
    except ssl.SSLError as error:
        raise ConfigError(f"'{address.cacertfile}' has no certificate: {error}") from error
    try:
        found = await engine.check()
        for line in found:
            print(f"engine: {line}", file=sys.stderr)
        if found:
            raise EngineUnfit(f"RabbitMQ at {address.names} can't be the engine, see above")
        await engine.start()
    except EngineUnavailable as error:
        await engine.stop()
        raise Unreachable(f"engine: {error}") from error
    except BaseException:
        await engine.stop()
        raise
    return engine


async def take_over(engine: AmqpEngine, hub_id: str) -> None:
    """Closes the connections of the hub that was active before, and has not stopped by itself.

    It takes some seconds, since the management API does not list a connection at once.
    """
    for _ in range(LISTED_WITHIN_S):
        try:
            await engine.take_over(hub_id)
        except EngineUnavailable as error:
            log.warning("can't close connections of the hub before: %s", error)
        await asyncio.sleep(1)
