"""The connection handshake: header, start, authentication, tune, open (AMQP 0-9-1 1.4, 2.2.4).

An open connection drops its handshake; the results are a user, a virtual host and the negotiated
limits.
"""

from __future__ import annotations

import logging
from enum import Enum, auto
from functools import cache
from typing import TYPE_CHECKING

from pamqp import base, commands

from .. import VERSION
from ..auth import GUEST, User
from ..errors import ConnectionFault
from ..wire.frames import PROTOCOL_HEADER, method_frame
from ..wire.method_ids import (
    CONNECTION_OPEN_OK,
    CONNECTION_START,
    CONNECTION_START_OK,
    CONNECTION_TUNE,
)
from ..wire.tables import decode_table, encode_table

if TYPE_CHECKING:
    from .connection import Connection

logger = logging.getLogger(__name__)
READABLE = ": its password came without TLS from another machine; use amqps, or allow_plaintext"

HEADERS = (PROTOCOL_HEADER, b"AMQP\x01\x01\x00\x09")
FRAME_MIN_SIZE = 4_096
LOGIN_DELAY_S = 3.0
"""Delay before a client that does not understand a refusal is disconnected: slows guessing."""
KEPT_MAX_BYTES = 16_384
MECHANISMS = "PLAIN AMQPLAIN"
EXTERNAL = "EXTERNAL"
"""Offered only to clients whose verified certificate names a user."""

COMPATIBLE_PRODUCT = "RabbitMQ"
COMPATIBLE_VERSION = "3.13.7"
"""Clients choose features by product and version. kombu, and so Celery, sets a channel-wide
prefetch, which it must be able to raise while tasks wait for their time, for exactly this product
from 3.3 on; with any other name it limits each consumer once, and a worker with a few tasks for
tomorrow takes none for today. From 4.0 on clients avoid features that Warren has, such as shared
transient queues."""

CAPABILITIES = (
    "authentication_failure_close",
    "basic.nack",
    "connection.blocked",
    "consumer_cancel_notify",
    "consumer_priorities",
    "direct_reply_to",
    "exchange_exchange_bindings",
    "per_consumer_qos",
    "publisher_confirms",
)


class Stage(Enum):
    HEADER = auto()
    START_OK = auto()
    AUTHENTICATING = auto()
    TUNE_OK = auto()
    OPEN = auto()


class Handshake:
    """Takes a connection from its first octet to open-ok."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._stage = Stage.HEADER
        self._mechanism = ""

    @property
    def expects_header(self) -> bool:
        return self._stage is Stage.HEADER

    @property
    def paused(self) -> bool:
        """Whether a password is being checked; nothing more is read meanwhile."""
        return self._stage is Stage.AUTHENTICATING

    def check_kept(self, size: int) -> None:
        """Checks the size of the input buffered while a password is checked.

        Raises `ConnectionFault` 501 above `KEPT_MAX_BYTES`.
        """
        if size > KEPT_MAX_BYTES:
            raise ConnectionFault(
                501, f"{size} bytes before the login was answered, at most {KEPT_MAX_BYTES}"
            )

    def receive_header(self, data: bytes) -> int:
        """Reads the protocol header; returns its size, 0 while it is incomplete.

        Any other header is answered with the one of AMQP 0-9-1, and the connection closes.
        """
        head = data[:8]
        if not any(header.startswith(head) for header in HEADERS):
            self._connection.write(PROTOCOL_HEADER)
            self._connection.finish()
            return 0
        if len(head) < 8:
            return 0
        self._stage = Stage.START_OK
        external = self._connection.certified is not None
        self._connection.write(method_frame(0, CONNECTION_START, _start_arguments(external)))
        return 8

    def receive(self, method: base.Frame) -> None:
        """Handles a method on channel 0. Raises `ConnectionFault` 403, 502-504 or 530."""
        if self._stage is Stage.START_OK and isinstance(method, commands.Connection.StartOk):
            self._start_ok(method)
        elif self._stage is Stage.TUNE_OK and isinstance(method, commands.Connection.TuneOk):
            self._tune_ok(method)
        elif self._stage is Stage.OPEN and isinstance(method, commands.Connection.Open):
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
            connection.wants_blocked_notify = capabilities.get("connection.blocked") is True
        self._mechanism = method.mechanism
        if method.mechanism == EXTERNAL and connection.certified is not None:
            # The response is ignored, as RabbitMQ does: the certificate names the user.
            self._answer(self._certified_user(connection.certified))
            return
        name, password = read_credentials(method.mechanism, method.response)
        if not connection.takes_passwords:
            logger.warning("connection %s: login refused for user %.300r%s",
                           connection.name, name, READABLE)  # fmt: skip
            self._answer(None)
            return
        users = connection.broker.users
        if not users.throttle.wait_s(name, connection.address):
            user = users.known(name, password, loopback=connection.peer_is_loopback)
            if user is not None:
                users.throttle.succeeded(name, connection.address)
                self._answer(user)
                return
        self._stage = Stage.AUTHENTICATING
        connection.transport.authenticate(name, password, self._authenticated)

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
        if connection.handshake is not self:
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
            self._refuse()
            return
        connection.logged_in(user)
        limits = connection.broker.limits
        self._stage = Stage.TUNE_OK
        tune = b"".join(
            (
                limits.channel_max.to_bytes(2, "big"),
                limits.frame_max.to_bytes(4, "big"),
                limits.heartbeat_s.to_bytes(2, "big"),
            )
        )
        connection.write(method_frame(0, CONNECTION_TUNE, tune))

    def _refuse(self) -> None:
        capabilities = self._connection.client_properties.get("capabilities")
        if isinstance(capabilities, dict) and capabilities.get("authentication_failure_close"):
            raise ConnectionFault(
                403,
                f"Login was refused using authentication mechanism {self._mechanism}. "
                "For details see the broker logfile.",
            )
        self._stage = Stage.AUTHENTICATING
        self._connection.transport.drop_later(LOGIN_DELAY_S)

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
        self._stage = Stage.OPEN

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
        connection.write(method_frame(0, CONNECTION_OPEN_OK, b"\x00"))


def read_credentials(mechanism: str, response: str | bytes) -> tuple[str, str]:
    """Returns user name and password from a PLAIN or AMQPLAIN response.

    Raises:
        ConnectionFault: 503 for another mechanism, 502 for a response that is not of its form.
    """
    raw = response.encode() if isinstance(response, str) else bytes(response)
    if mechanism == "PLAIN":
        parts = raw.split(b"\0")
        if len(parts) != 3 or parts[0]:  # nobody logs in on behalf of another (RFC 4616 2)
            raise ConnectionFault(502, "PLAIN response is not of the form NUL user NUL password")
        try:
            return parts[1].decode(), parts[2].decode()
        except UnicodeDecodeError:
            raise ConnectionFault(502, "PLAIN response is not UTF-8") from None
    if mechanism == "AMQPLAIN":
        table, _ = decode_table(len(raw).to_bytes(4, "big") + raw, 0, len(raw) + 4)
        name, password = table.get("LOGIN"), table.get("PASSWORD")
        if not isinstance(name, str) or not isinstance(password, str):
            raise ConnectionFault(502, "AMQPLAIN response has no LOGIN and PASSWORD")
        return name, password
    raise ConnectionFault(503, f"unknown authentication mechanism '{mechanism}'")


def _negotiate(name: str, asked: int, offered: int) -> int:
    """Returns the agreed limit: 0 accepts the offered one, more is refused (AMQP 0-9-1 1.4.2.6)."""
    if asked > offered:
        raise ConnectionFault(
            530,
            f"negotiated {name} = {asked} is higher than the maximum allowed value ({offered})",
        )
    return asked or offered


@cache
def _start_arguments(external: bool) -> bytes:
    properties = encode_table(
        {
            "product": COMPATIBLE_PRODUCT,
            "version": COMPATIBLE_VERSION,
            "platform": f"Warren {VERSION}",
            "cluster_name": "warren",
            "copyright": "Warren contributors",
            "information": "Licensed under Apache 2.0",
            "capabilities": dict.fromkeys(CAPABILITIES, True),
        }
    )
    mechanisms = f"{MECHANISMS} {EXTERNAL}".encode() if external else MECHANISMS.encode()
    locales = b"en_US"
    return b"".join(
        (
            b"\x00\x09",
            properties,
            len(mechanisms).to_bytes(4, "big"),
            mechanisms,
            len(locales).to_bytes(4, "big"),
            locales,
        )
    )
