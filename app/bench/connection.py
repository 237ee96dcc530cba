"""A blocking AMQP connection with one channel, for generating load."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import unquote, urlsplit

from pamqp import base, body, commands, constants, frame, header, heartbeat
from pamqp.common import FieldTable

from ...core.errors import ConfigError, WarrenError

TIMEOUT_S: Final = 30.0
READ_BYTES: Final = 256 * 1024
FRAME_MAX: Final = 131_072
FRAME_HEAD_BYTES: Final = 7
MAX_BODY_BYTES: Final = FRAME_MAX - FRAME_HEAD_BYTES - 1
"""The limit of what fits one frame: larger messages are not measured."""
CHANNEL: Final = 1
_PORTS: Final = {"amqp": 5672, "amqps": 5671}
_PROPERTIES: Final[FieldTable] = {"capabilities": {"authentication_failure_close": True}}
"""A broker that knows this says why it refuses a login."""
_HEADER: Final = b"AMQP\x00\x00\x09\x01"

Method = TypeVar("Method", bound=base.Frame)


class BrokerError(WarrenError):
    """The broker has refused something, or does not do what is expected."""


class NoBroker(BrokerError):
    """There is no broker, or it can't be reached."""


class ConnectionEnded(BrokerError):
    """The broker has closed the connection without a reason."""


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """The address of a broker, and the credentials for it."""

    host: str
    port: int
    user: str
    password: str
    vhost: str
    is_secure: bool


def read_address(url: str) -> BrokerAddress:
    """Reads `amqp://USER:PASSWORD@HOST:PORT/VHOST`. Raises `ConfigError`."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ConfigError("give the broker's URL as amqp://USER:PASSWORD@HOST:PORT/VHOST")
    return BrokerAddress(
        parts.hostname,
        parts.port or _PORTS[parts.scheme],
        unquote(parts.username or "guest"),
        unquote(parts.password or "guest"),
        unquote(parts.path[1:]) or "/",
        parts.scheme == "amqps",
    )


class Connection:
    """An AMQP connection with one channel. Raises `BrokerError` for whatever is not as expected."""

    def __init__(self, address: BrokerAddress) -> None:
        self.unread = bytearray()
        place = f"{address.host}:{address.port}"
        try:
            self.socket = _connected(address)
            self.socket.sendall(_HEADER)
            self.unread += self.read()
        except OSError as error:
            reason = error.strerror or error
            raise NoBroker(f"the broker at {place} can't be reached: {reason}") from error
        if self.unread[0] != constants.FRAME_METHOD:
            raise NoBroker(f"what answers at {place} does not speak AMQP 0-9-1")
        self._log_in(address)

    def _log_in(self, address: BrokerAddress) -> None:
        self.expect(commands.Connection.Start)
        response = f"\0{address.user}\0{address.password}"
        self.send(commands.Connection.StartOk(_PROPERTIES, "PLAIN", response, "en_US"), 0)
        try:
            tune = self.expect(commands.Connection.Tune)
        except ConnectionEnded as error:
            raise BrokerError(
                f"{error} at the login of user '{address.user}': are name and password right?"
            ) from error
        frame_max = min(tune.frame_max or FRAME_MAX, FRAME_MAX)
        self.send(commands.Connection.TuneOk(tune.channel_max, frame_max, 0), 0)
        self.send(commands.Connection.Open(address.vhost), 0)
        self.expect(commands.Connection.OpenOk)
        self.call(commands.Channel.Open(), commands.Channel.OpenOk)

    def send(self, method: base.Frame, channel: int = CHANNEL) -> None:
        self.socket.sendall(frame.marshal(method, channel))

    def call(self, method: base.Frame, answer: type[Method]) -> Method:
        """Sends a method; returns its answer."""
        self.send(method)
        return self.expect(answer)

    def expect(self, wanted: type[Method]) -> Method:
        """Returns the next method, which has to be of this kind."""
        while True:
            found = self._frame()
            if isinstance(found, wanted):
                return found
            if isinstance(found, commands.Channel.Close | commands.Connection.Close):
                raise BrokerError(f"{found.reply_code} {found.reply_text}")
            if not isinstance(found, heartbeat.Heartbeat):
                raise BrokerError(f"{wanted.__name__} was expected, {found} came")

    def _frame(self) -> object:
        while True:
            if len(self.unread) >= FRAME_HEAD_BYTES:
                size = int.from_bytes(self.unread[3:7], "big") + FRAME_HEAD_BYTES + 1
                if len(self.unread) >= size:
                    raw = bytes(self.unread[:size])
                    del self.unread[:size]
                    return frame.unmarshal(raw)[2]
            self.unread += self.read()

    def read(self) -> bytes:
        """Returns the bytes that have arrived. Raises `TimeoutError` for nothing in the socket's
        time."""
        try:
            data = self.socket.recv(READ_BYTES)
        except TimeoutError:
            raise
        except OSError as error:
            raise BrokerError(f"the connection is lost: {error.strerror or error}") from error
        if not data:
            raise ConnectionEnded("the broker has closed the connection")
        return data

    def close(self) -> None:
        self.socket.close()


def _connected(address: BrokerAddress) -> socket.socket:
    """Returns a connected socket; raises `OSError`, of which errors of TLS are some."""
    found = socket.create_connection((address.host, address.port), TIMEOUT_S)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not address.is_secure:
        return found
    return ssl.create_default_context().wrap_socket(found, server_hostname=address.host)


def published(exchange: str, routing_key: str, text: bytes, *, persistent: bool) -> bytes:
    """Returns the frames of a message."""
    properties = commands.Basic.Properties(delivery_mode=2 if persistent else 1)
    head = header.ContentHeader(0, len(text), properties)
    method = commands.Basic.Publish(exchange=exchange, routing_key=routing_key)
    frames = [frame.marshal(method, CHANNEL), frame.marshal(head, CHANNEL)]
    return b"".join([*frames, frame.marshal(body.ContentBody(text), CHANNEL)] if text else frames)
