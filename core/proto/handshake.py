"""The connection handshake: header, start, authentication, tune, open (AMQP 0-9-1 1.4, 2.2.4).

An open connection drops its handshake; the results are a user, a virtual host and the negotiated
limits.
"""

from __future__ import annotations

import logging
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from pamqp import base, commands

from ..auth import GUEST, User
from ..errors import ConnectionFault
from ..wire.frames import PROTOCOL_HEADER, method_frame
from ..wire.method_ids import (
    CONNECTION_OPEN_OK,
    CONNECTION_START,
    CONNECTION_START_OK,
    CONNECTION_TUNE,
)
from .connection_state import ConnectionState
from .credentials import read_credentials
from .server_properties import EXTERNAL, start_arguments

if TYPE_CHECKING:
    from .context import ConnectionContext

logger = logging.getLogger(__name__)
_PASSWORD_READABLE: Final = (
    ": its password came without TLS from another machine; use amqps, or allow_plaintext"
)

HEADERS: Final = (PROTOCOL_HEADER, b"AMQP\x01\x01\x00\x09")
FRAME_MIN_SIZE: Final = 4_096
LOGIN_DELAY_S: Final = 3.0
"""Delay before a client that does not understand a refusal is disconnected: slows guessing."""
BUFFERED_MAX_BYTES: Final = 16_384


class Step(Enum):
    HEADER = auto()
    START_OK = auto()
    AUTHENTICATING = auto()
    TUNE_OK = auto()
    OPEN = auto()


class Handshake:
    """Takes a connection from its first octet to open-ok."""

    def __init__(self, connection: ConnectionContext) -> None:
        self._connection = connection
        self._step = Step.HEADER
        self._mechanism = ""

    @property
    def expects_header(self) -> bool:
        return self._step is Step.HEADER

    @property
    def paused(self) -> bool:
        """Whether a password is being checked; nothing more is read meanwhile."""
        return self._step is Step.AUTHENTICATING

    def check_buffered(self, size: int) -> None:
        """Checks the size of the input buffered while a password is checked.

        Raises `ConnectionFault` 501 above `BUFFERED_MAX_BYTES`.
        """
        if size > BUFFERED_MAX_BYTES:
            raise ConnectionFault(
                501, f"{size} bytes received before authentication, limit {BUFFERED_MAX_BYTES}"
            )

    def receive_header(self, data: bytes) -> int:
        """Reads the protocol header; returns its size, 0 while it is incomplete.

        Any other header is answered with the one of AMQP 0-9-1, and the connection closes.
        """
        head = data[:8]
        if not any(header.startswith(head) for header in HEADERS):
            self._connection.output.write(PROTOCOL_HEADER)
            self._connection.finish()
            return 0
        if len(head) < 8:
            return 0
        self._step = Step.START_OK
        external = self._connection.certified is not None
        arguments = start_arguments(
            external, self._connection.broker.global_parameters.cluster_name
        )
        self._connection.output.write(method_frame(0, CONNECTION_START, arguments))
        return 8

    def receive(self, method: base.Frame) -> None:
        """Handles a method on channel 0. Raises `ConnectionFault` 403, 502-504 or 530."""
        if self._step is Step.START_OK and isinstance(method, commands.Connection.StartOk):
            self._start_ok(method)
        elif self._step is Step.TUNE_OK and isinstance(method, commands.Connection.TuneOk):
            self._tune_ok(method)
        elif self._step is Step.OPEN and isinstance(method, commands.Connection.Open):
            self._open(method)
        elif isinstance(method, commands.Connection.Close):
            self._connection.close_by_client()
        else:
            raise ConnectionFault(
                504, f"{method.name} is not expected at this step of the handshake"
            )

    def _start_ok(self, method: commands.Connection.StartOk) -> None:
        connection = self._connection
        connection.client_properties = dict(method.client_properties or {})
        capabilities = connection.client_properties.get("capabilities")
        if isinstance(capabilities, dict):
            connection.wants_cancel_notify = capabilities.get("consumer_cancel_notify") is True
            connection.pending.notifies_client = capabilities.get("connection.blocked") is True
        self._mechanism = connection.mechanism = method.mechanism
        if method.mechanism == EXTERNAL and connection.certified is not None:
            # The response is ignored, as RabbitMQ does: the certificate names the user.
            self._answer(self._certified_user(connection.certified))
            return
        name, password = read_credentials(method.mechanism, method.response)
        if not connection.takes_passwords:
            logger.warning("connection %s: login refused for user %.300r%s",
                           connection.name, name, _PASSWORD_READABLE)  # fmt: skip
            self._answer(None)
            return
        users = connection.broker.users
        if not users.throttle.wait_s(name, connection.address):
            user = users.passwords.known(name, password, loopback=connection.peer_is_loopback)
            if user is not None:
                users.throttle.succeeded(name, connection.address)
                self._answer(user)
                return
        self._step = Step.AUTHENTICATING
        connection.output.transport.authenticate(name, password, self._authenticated)

    def _certified_user(self, name: str) -> User | None:
        """Returns the user a certificate names; None if unknown, or `guest` from elsewhere."""
        connection = self._connection
        user = connection.broker.users.get(name)
        if user is None or (name == GUEST and not connection.peer_is_loopback):
            logger.warning("connection %s: certificate of %.300r refused", connection.name, name)
            return None
        return user

    def _authenticated(self, user: User | None) -> None:
        """Continues in a later turn with the checked user and the input buffered meanwhile."""
        connection = self._connection
        if connection.state is not ConnectionState.HANDSHAKE:
            return
        try:
            self._answer(user)
        except ConnectionFault as error:
            connection.current_method = CONNECTION_START_OK
            connection.fail(error)
            return
        connection.receive(b"")

    def _answer(self, user: User | None) -> None:
        connection = self._connection
        if user is None:
            connection.broker.statistics.churned().login_failed += 1
            self._refuse()
            return
        connection.broker.statistics.churned().login_succeeded += 1
        connection.logged_in(user)
        limits = connection.broker.limits
        self._step = Step.TUNE_OK
        tune = b"".join(
            (
                limits.channel_max.to_bytes(2, "big"),
                limits.frame_max.to_bytes(4, "big"),
                limits.heartbeat_s.to_bytes(2, "big"),
            )
        )
        connection.output.write(method_frame(0, CONNECTION_TUNE, tune))

    def _refuse(self) -> None:
        capabilities = self._connection.client_properties.get("capabilities")
        if isinstance(capabilities, dict) and capabilities.get("authentication_failure_close"):
            raise ConnectionFault(
                403,
                f"Login was refused using authentication mechanism {self._mechanism}. "
                "For details see the broker logfile.",
            )
        self._step = Step.AUTHENTICATING
        self._connection.output.transport.drop_later(LOGIN_DELAY_S)

    def _tune_ok(self, method: commands.Connection.TuneOk) -> None:
        connection = self._connection
        limits = connection.broker.limits
        connection.channel_max = _negotiate("channel_max", method.channel_max, limits.channel_max)
        if method.frame_max and method.frame_max < FRAME_MIN_SIZE:
            raise ConnectionFault(
                530,
                f"negotiated frame_max = {method.frame_max} is lower than the minimum allowed "
                f"value ({FRAME_MIN_SIZE})",
            )
        connection.frame_max = _negotiate("frame_max", method.frame_max, limits.frame_max)
        connection.heartbeat_s = method.heartbeat
        self._step = Step.OPEN

    def _open(self, method: commands.Connection.Open) -> None:
        connection = self._connection
        name = method.virtual_host or "/"
        vhost = connection.broker.vhost(name)
        if not connection.user.may_enter(name):
            raise ConnectionFault(
                530, f"access to vhost '{name}' refused for user '{connection.user.name}'"
            )
        connection.broker.occupancy.enter(connection, vhost)
        connection.opened(vhost)
        connection.output.write(method_frame(0, CONNECTION_OPEN_OK, b"\x00"))


def _negotiate(name: str, requested: int, offered: int) -> int:
    """Returns the agreed limit: 0 accepts the offered one, more is refused (AMQP 0-9-1 1.4.2.6)."""
    if requested > offered:
        raise ConnectionFault(
            530,
            f"negotiated {name} = {requested} is higher than the maximum allowed value ({offered})",
        )
    return requested or offered
