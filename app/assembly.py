"""Makes the parts that are there before the hub is active: hub, logins, listener, publisher.

None of them is started here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.server.listener import Listener
from ..core.server.resources import Resources
from ..hub.peers.peers import Peers
from ..hub.processes.starter import ProcessStarter
from ..hub.service import Hub
from .access.authentication import Authenticator
from .access.owners import OwnerRights
from .configuration.parts import hub_settings
from .configuration.tls import certificate_name
from .opening import OpenedEngine
from .routes.publish import HttpPublisher
from .startup import Startup

if TYPE_CHECKING:
    from ..hub.spans import Spans


class Assembly:
    """The parts of a server with this engine. `peers` is None where no other hub can share the
    database, `spans` where none are recorded."""

    def __init__(
        self,
        startup: Startup,
        opened: OpenedEngine,
        starter: ProcessStarter,
        peers: Peers | None,
        spans: Spans | None,
    ) -> None:
        self._startup = startup
        self.opened = opened
        self.hub = self._create_hub(starter, peers, spans)
        self.authenticator = self._create_authenticator()
        self.listener = self._create_listener()
        self.resources = self._create_resources()
        self.publisher = self._create_publisher(spans)

    def _create_hub(self, starter: ProcessStarter, peers: Peers | None, spans: Spans | None) -> Hub:
        startup, broker = self._startup, self.opened.broker
        settings, port = startup.settings, startup.sockets.http_ports()["http"]
        hub = Hub(
            self.opened.engine,
            hub_settings(settings, startup.base_urls(), startup.own_ports(), port),
            startup.directory,
            starter=starter,
            clock=broker.clock,
            database_url=settings.database or None,
            rights=OwnerRights(broker.users, broker.vhosts, settings.hub_user),
            peers=peers,
        )
        hub.dispatcher.spans = spans
        return hub

    def _create_authenticator(self) -> Authenticator:
        startup = self._startup
        return Authenticator(
            self.opened.broker.users,
            near=startup.local_requests().is_near,
            may_log_in=startup.exposure.may_log_in,
            lets_guest_in=startup.settings.allows_guest_over_http(),
        )

    def _create_listener(self) -> Listener:
        settings = self._startup.settings
        return Listener(
            self.opened.broker,
            logins=self.authenticator.logins,
            certificate_name=certificate_name(settings),
            proxies=settings.amqp_proxy_networks(),
            takes_plaintext=self._startup.exposure.takes_plaintext,
        )

    def _create_resources(self) -> Resources:
        settings = self._startup.settings
        return Resources(
            self.listener,
            self._startup.directory,
            memory=settings.memory_amount(),
            disk_free=settings.disk_free_amount(),
        )

    def _create_publisher(self, spans: Spans | None) -> HttpPublisher:
        settings, broker = self._startup.settings, self.opened.broker
        return HttpPublisher(
            self.opened.engine,
            self.authenticator,
            broker.vhosts,
            broker.alarms,
            max_body_bytes=settings.max_message_bytes,
            correlation_id_header=settings.set_correlation_id,
            message_id_header=settings.set_message_id,
            max_hops=settings.max_hops,
            public_url=settings.public_url,
            spans=spans,
        )
