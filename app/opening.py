"""Opens the broker and the engine: those of the data directory, or a RabbitMQ cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core import VERSION
from ..core.auth import GUEST, Users, hashed
from ..core.broker import Broker
from ..core.clock import Clock, SystemClock
from ..core.definitions.reserved_names import rename_reserved
from ..core.store.durable import DurableStore
from ..core.store.offline import LOG
from ..hub.engine.amqp.address import EngineAddress
from ..hub.engine.embedded import EmbeddedEngine
from ..hub.engine.own import is_own
from ..hub.engine.port import Engine
from ..hub.storage.schema import DATABASE_NAME, refuse_newer_file
from .access.setup_link import SetupLink, has_administrator
from .configuration.parts import broker_limits
from .configuration.settings import Settings
from .engine import connect
from .exposure import Exposure
from .node import node_name
from .snapshots import clear
from .startup import Startup
from .storage import open_store, stop_store

if TYPE_CHECKING:
    from ..hub.engine.amqp.engine import AmqpEngine


@dataclass(frozen=True, slots=True)
class OpenedEngine:
    """The engine and the broker. On a cluster that is only the register of virtual hosts and users,
    `store` is None and `cluster` the engine."""

    engine: Engine
    broker: Broker
    store: DurableStore | None = None
    cluster: AmqpEngine | None = None
    restored: Users | None = None
    """The users of a data directory that existed before the start."""
    setup_link: SetupLink | None = None
    """For the first administrator; None if one can log in over HTTP."""

    def is_reachable(self) -> bool:
        return self.cluster is None or self.cluster.is_reachable


def open_embedded(
    startup: Startup,
    stack: AsyncExitStack,
    on_failure: Callable[[OSError], None],
    note: Callable[[str], None],
) -> OpenedEngine:
    """Opens the store, and restores what is in it, or sets up the first user; `note` logs what the
    server starts with. The stack stops the store. Raises as `open_store`."""
    settings, directory, clock = startup.settings, startup.directory, SystemClock()
    if not settings.database:
        refuse_newer_file(directory / DATABASE_NAME)
    clear(directory)
    store = open_store(directory, clock, settings.segment_bytes, on_failure)
    broker = _broker(settings, clock, store)
    stack.callback(stop_store, store, broker)
    rename_reserved(store, is_own)
    is_restored = broker.restore()
    if is_restored:
        startup.exposure.check_guest(broker.users)
    else:
        _set_up(broker, startup.exposure)
        store.flush()
    link = _new_setup_link(startup, broker.users)
    how = "is restored" if is_restored else "is new"
    note(f"Warren {VERSION}: data directory {directory} {how}; {_contents(broker)}")
    loop = asyncio.get_running_loop()
    store.start(lambda action: _post(loop, action))
    restored = broker.users if is_restored else None
    return OpenedEngine(
        EmbeddedEngine(broker), broker, store=store, restored=restored, setup_link=link
    )


async def open_cluster(
    startup: Startup,
    address: EngineAddress,
    stack: AsyncExitStack,
    hub_id: str,
    on_taken_over: Callable[[], None],
    say: Callable[[str], None],
) -> OpenedEngine:
    """Connects to the cluster. The stack ends the connections. Raises as `connect`."""
    clear(startup.directory)
    log = startup.directory / LOG
    if log.exists():
        say(f"{log} is of the embedded engine, and is not served")
    broker = _broker(startup.settings, SystemClock())
    engine = await connect(address, broker, hub_id, on_taken_over)
    stack.push_async_callback(engine.stop)
    return OpenedEngine(engine, broker, cluster=engine)


def _broker(settings: Settings, clock: Clock, store: DurableStore | None = None) -> Broker:
    broker = Broker(
        Users(), store=store, clock=clock, limits=broker_limits(settings), node_name=node_name()
    )
    broker.users.throttle.enabled = settings.login_throttle
    broker.users.throttle.spares_loopback = settings.dev
    return broker


def _set_up(broker: Broker, exposure: Exposure) -> None:
    """Gives a new server its first administrator, if the settings name one."""
    first = exposure.first_user()
    if first is None:
        broker.set_up()
    else:
        name, password = first
        broker.set_up(name, hashed(password))


def _new_setup_link(startup: Startup, users: Users) -> SetupLink | None:
    is_guest_let_in = startup.settings.allows_guest_over_http() and users.get(GUEST) is not None
    if is_guest_let_in or has_administrator(users):
        return None
    return SetupLink(users, startup.exposure.takes_password)


def _contents(broker: Broker) -> str:
    vhosts = broker.vhosts.values()
    return (
        f"virtual hosts: {len(vhosts)}, "
        f"exchanges: {sum(len(one.exchanges) for one in vhosts)}, "
        f"queues: {sum(len(one.queues) for one in vhosts)}, "
        f"users: {sum(1 for _ in broker.users)}"
    )


def _post(loop: asyncio.AbstractEventLoop, action: Callable[[], None]) -> None:
    """Runs the action in the loop; does nothing if the loop is closed already."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(action)
