"""A broker behind a socket: Warren's server, or RabbitMQ as the oracle."""

from __future__ import annotations

import contextlib
import json
import select
import struct
from base64 import b64encode
from collections.abc import Iterable
from urllib.request import Request, urlopen

from tests.conformance import frames, raw
from tests.support.amqp import Reply, method, read

from .operations import Call, Drop, Operation, Policy, Publishes, Seat
from .wire import operation_bytes

CONNECTIONS = (0, 1)
CONTROL = 2
"""A connection of the test's own."""
PROBE = 9
"""The channel that asks for counts."""
ROUNDS = 3
"""A dead letter of a dead letter has arrived then; for the longest ways see `Outside.settle`."""
PATIENCE_S = 10.0


class Link:
    """One connection, and what has come on it."""

    def __init__(self, port: int) -> None:
        self.client = raw.connect(port)
        self.client.channel(PROBE)
        self.buffer = bytearray()
        self.replies: list[Reply] = []

    def send(self, data: bytes) -> None:
        self.client.send(data)

    def read(self, wait_s: float = 0) -> bool:
        """Takes in what has come; gives False when nothing has."""
        self.buffer += self.client._buffer
        self.client._buffer.clear()
        if not select.select([self.client.socket], [], [], wait_s)[0]:
            return False
        try:
            data = self.client.socket.recv(1 << 18)
        except ConnectionResetError:
            data = b""
        if not data:
            raise raw.Disconnected("without connection.close")
        self.buffer += data
        end = whole(self.buffer)
        self.replies += read(bytes(self.buffer[:end]))
        del self.buffer[:end]
        return True

    def wait(self, channel: int, *names: str) -> None:
        """Waits for such a method, or a close."""
        names = (*names, "Channel.Close", "Connection.Close")
        while not any(
            reply.channel in (channel, 0) and reply.name in names for reply in self.replies
        ):
            assert self.read(PATIENCE_S), f"no answer on channel {channel}"

    def next(self, channel: int, *names: str) -> Reply:
        """Waits for such a method on a channel and takes it out; a close stays where it is."""
        while True:
            for at, reply in enumerate(self.replies):
                if reply.name == "Connection.Close":
                    return reply
                if reply.channel == channel and reply.name in names:
                    return self.replies.pop(at)
                if reply.channel == channel and reply.name == "Channel.Close":
                    return reply
            assert self.read(PATIENCE_S), f"no answer on channel {channel}"

    def look(self, queue: str) -> tuple[int, int] | None:
        """Ready messages and consumers; None if it is not there."""
        self.send(method(PROBE, "Queue.Declare", queue=queue, passive=True))
        reply = self.next(PROBE, "Queue.DeclareOk")
        if reply.name == "Queue.DeclareOk":
            return reply["message_count"], reply["consumer_count"]
        if reply.name == "Channel.Close":
            self.replies.remove(reply)
            self.send(method(PROBE, "Channel.CloseOk") + method(PROBE, "Channel.Open"))
            self.next(PROBE, "Channel.OpenOk")
        return None

    def flush(self, channel: int) -> None:
        """Returns when all is here that the channel has sent so far."""
        self.send(method(channel, "Channel.Flow", active=True))
        self.next(channel, "Channel.FlowOk")

    def taken(self) -> list[Reply]:
        taken, self.replies = self.replies, []
        return taken

    def close(self) -> None:
        self.client.socket.close()


def whole(data: bytes | bytearray) -> int:
    """Where the last method ends that is there with all of its content."""
    at = end = 0
    open_bytes: int | None = None
    while at + 7 <= len(data):
        kind, _, size = struct.unpack_from(">BHI", data, at)
        if at + size + frames.FRAME_OVERHEAD > len(data):
            break
        payload, at = at + 7, at + size + frames.FRAME_OVERHEAD
        if kind == frames.METHOD:
            carries = struct.unpack_from(">HH", data, payload) in ((60, 50), (60, 60), (60, 71))
            open_bytes = 0 if carries else None
            if carries:
                continue
        elif kind == frames.HEADER:
            open_bytes = struct.unpack_from(">Q", data, payload + 4)[0]
        elif kind == frames.BODY:
            assert open_bytes is not None
            open_bytes -= size
        if not open_bytes:
            end = at
    return end


def ask(method: str, url: str, body: dict[str, object] | None = None) -> None:
    """Of a management API, as guest; raises `HTTPError` for a refusal."""
    headers = {
        "Authorization": "Basic " + b64encode(b"guest:guest").decode(),
        "Content-Type": "application/json",
    }
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, headers, method=method)):
        pass


class Outside:
    """Two connections that operations use, and one that looks."""

    def __init__(self, port: int, api_url: str) -> None:
        self.port = port
        self.api_url = api_url
        self.policies: set[str] = set()
        self.links = {number: Link(port) for number in (*CONNECTIONS, CONTROL)}
        self.lasting: list[Call] = []
        """Bindings between exchanges of the broker's own, which nothing else takes away."""

    def close(self) -> None:
        for name in sorted(self.policies):
            self._set_policy(Policy(name))
        link = self.links[CONTROL]
        for call in self.lasting:
            link.send(method(PROBE, "Exchange.Unbind", **call.fields))
            link.next(PROBE, "Exchange.UnbindOk")
        for link in self.links.values():
            with contextlib.suppress(raw.Disconnected, AssertionError, OSError):
                link.client.close()
            link.close()

    def clear(self, queues: Iterable[str], exchanges: Iterable[str]) -> None:
        """Deletes what an earlier run may have left."""
        link = self.links[CONTROL]
        for name in queues:
            link.send(method(PROBE, "Queue.Delete", queue=name))
            link.next(PROBE, "Queue.DeleteOk")
        for name in exchanges:
            link.send(method(PROBE, "Exchange.Delete", exchange=name))
            link.next(PROBE, "Exchange.DeleteOk")

    def send(self, operation: Operation) -> None:
        if isinstance(operation, Call) and operation.method == "Exchange.Bind":
            self.lasting.append(operation)
        match operation:
            case Call((connection, _)) | Publishes((connection, _)):
                link = self.links[connection]
                link.send(operation_bytes(operation))
                if isinstance(operation, Call) and operation.method == "Tx.Commit":
                    link.wait(operation.seat[1], "Tx.CommitOk")
            case Drop(connection):
                self.links[connection].close()
                self.links[connection] = Link(self.port)
            case Policy():
                self._set_policy(operation)
            case _:
                raise NotImplementedError(operation)

    def _set_policy(self, policy: Policy) -> None:
        url = f"{self.api_url}/policies/%2F/{policy.name}"
        if policy.definition is None:
            if policy.name in self.policies:
                ask("DELETE", url)
            self.policies.discard(policy.name)
            return
        self.policies.add(policy.name)
        ask(
            "PUT", url,
            {
                "pattern": policy.pattern, "definition": dict(policy.definition),
                "priority": policy.priority, "apply-to": policy.apply_to,
            },
        )  # fmt: skip

    def settle(
        self, seats: Iterable[Seat], queues: dict[str, int | None]
    ) -> dict[str, tuple[int, int]]:
        """Waits until what was sent has had its effect; gives ready messages and consumers.

        A queue answers behind what it has done, a channel behind what it has sent. Of a queue its
        owner is told, the connection that may use it.
        """
        counts: dict[str, tuple[int, int]] = {}
        for _ in range(ROUNDS):
            for name, owner in queues.items():
                found = self.links[CONTROL if owner is None else owner].look(name)
                if found is not None:
                    counts[name] = found
            for connection, channel in seats:
                self.links[connection].flush(channel)
        return counts

    def came(self) -> dict[Seat, list[Reply]]:
        """By seat, since the last time."""
        found: dict[Seat, list[Reply]] = {}
        for number in CONNECTIONS:
            link = self.links[number]
            while link.read():
                pass
            for reply in link.taken():
                found.setdefault((number, reply.channel), []).append(reply)
                if reply.name == "Channel.Close":
                    link.send(method(reply.channel, "Channel.CloseOk"))
                elif reply.name == "Connection.Close":
                    link.send(method(0, "Connection.CloseOk"))
                    link.close()
                    self.links[number] = Link(self.port)
        return found
