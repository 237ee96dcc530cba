"""Random methods from several clients at once: whatever they ask, the server has an answer."""

from __future__ import annotations

import random
import select

import pytest

from tests.conformance import frames, raw
from tests.support.server import WarrenServer

from .support import assert_serves, method

CLIENTS, CHANNELS, BATCHES = 5, 3, 400
QUEUES = [f"random{number}" for number in range(5)]
BUILT_IN = ["amq.direct", "amq.topic", "amq.fanout", "amq.headers"]
EXCHANGES = [f"random{number}" for number in range(4)]
KEYS = ["a", "a.b", "#", "*.b", "", "amq.rabbitmq.reply-to", *QUEUES]
HEADERS = [["random0", "random1"], "x", 1, None, [{"queue": "random0", "reason": "expired"}]]
ARGUMENTS: dict[str, list[object]] = {
    "x-message-ttl": [0, 1, 5, 50],
    "x-expires": [1, 20, 100],
    "x-max-length": [0, 1, 10],
    "x-max-length-bytes": [0, 10, 1000],
    "x-overflow": ["drop-head", "reject-publish", "reject-publish-dlx"],
    "x-dead-letter-exchange": ["", "random0", "amq.fanout", "nowhere"],
    "alternate-exchange": ["random0", "random1"],
}
CHANNEL_CLOSE, CONNECTION_CLOSE = b"\x00\x14\x00\x28", b"\x00\x0a\x00\x32"


class Monkey:
    """Types valid frames at random; the same seed types the same."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def batch(self) -> bytes:
        return b"".join(self._frames() for _ in range(self.random.randint(1, 30)))

    def _frames(self) -> bytes:
        channel = self.random.randint(1, CHANNELS)
        if self._chance(0.35):
            return self._publish(channel)
        name = self.random.choice(
            [
                "Queue.Declare", "Queue.Bind", "Queue.Unbind", "Queue.Purge", "Queue.Delete",
                "Exchange.Declare", "Exchange.Delete", "Exchange.Bind", "Exchange.Unbind",
                "Basic.Qos", "Basic.Consume", "Basic.Cancel", "Basic.Get", "Basic.Ack",
                "Basic.Nack", "Basic.Reject", "Basic.Recover", "Confirm.Select", "Channel.Flow",
                "Channel.Close",
            ]
        )  # fmt: skip
        sent = method(name, channel, **self._fields(name))
        return sent + method("Channel.Open", channel) if name == "Channel.Close" else sent

    def _fields(self, name: str) -> dict[str, object]:
        fields = {}
        for field in frames.method_type(name).attributes():
            kind = frames.method_type(name).amqp_type(field)
            fields[field] = self._value(name, field, kind)
        if name.endswith("Unbind"):
            fields.pop("nowait", None)
        return fields

    def _value(self, method_name: str, field: str, kind: str) -> object:
        choose = self.random.choice
        known: dict[str, list[object]] = {
            "queue": [*QUEUES, "" if method_name == "Queue.Declare" else "random0"],
            "exchange": [*EXCHANGES] if method_name.startswith("Exchange") else [*BUILT_IN],
            "source": [*EXCHANGES, *BUILT_IN],
            "destination": [*EXCHANGES],
            "routing_key": [*KEYS],
            "exchange_type": ["direct", "topic", "fanout", "headers"],
            "consumer_tag": [f"tag{number}" for number in range(200)],
            "delivery_tag": [*range(60)],
            "prefetch_count": [0, 1, 3, 100],
            "prefetch_size": [0],
        }
        if field in known:
            return choose(known[field])
        if kind == "bit":
            return self._chance(0.3)
        if kind == "table":
            return self._arguments()
        return None

    def _arguments(self) -> dict[str, object]:
        return {
            name: self.random.choice(values)
            for name, values in ARGUMENTS.items()
            if self._chance(0.15)
        }

    def _publish(self, channel: int) -> bytes:
        properties: dict[str, object] = {}
        if self._chance(0.3):
            properties["expiration"] = self.random.choice(["0", "1", "1000", "soon", "9" * 14])
        if self._chance(0.2):
            properties["reply_to"] = self.random.choice(["amq.rabbitmq.reply-to", "random0"])
        if self._chance(0.2):
            header = self.random.choice(["CC", "BCC", "a", "x-death"])
            properties["headers"] = {header: self.random.choice(HEADERS)}
        message = frames.publish_frames(
            channel,
            bytes(self.random.choice([0, 1, 10, 100, 5_000])),
            properties,
            mandatory=self._chance(0.2),
            exchange=self.random.choice(["", *EXCHANGES, *BUILT_IN]),
            routing_key=self.random.choice(KEYS),
        )
        return message * self.random.choice([1, 1, 1, 2, 20, 40])

    def _chance(self, share: float) -> bool:
        return self.random.random() < share


class Victim:
    """One connection under the monkey's hands; opens again what was closed to it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open()

    def _open(self) -> None:
        self.client = raw.connect(self._port)
        self.client.send(b"".join(method("Channel.Open", n + 1) for n in range(CHANNELS)))
        self._buffer = b""

    def type(self, data: bytes) -> None:
        while data:
            readable, writable, _ = select.select(
                [self.client.socket], [self.client.socket], [], raw.TIMEOUT_S
            )
            assert readable or writable, "the server neither reads nor answers"
            try:
                if readable and not self.read():
                    return
                if writable:
                    data = data[self.client.socket.send(data) :]
            except OSError:
                self.replace()
                return

    def read(self) -> bool:
        """Takes what has come; False if that was the end of the connection."""
        chunk = self.client.socket.recv(1 << 20)
        self._buffer += chunk
        answer, closed = b"", not chunk
        while len(self._buffer) >= 8:
            end = 8 + int.from_bytes(self._buffer[3:7], "big")
            if end > len(self._buffer):
                break
            frame, self._buffer = self._buffer[:end], self._buffer[end:]
            assert frame[-1:] == frames.FRAME_END
            if frame[:1] == b"\x01" and frame[7:11] == CHANNEL_CLOSE:
                number = int.from_bytes(frame[1:3], "big")
                answer += method("Channel.CloseOk", number) + method("Channel.Open", number)
            elif frame[:3] == b"\x01\x00\x00" and frame[7:11] == CONNECTION_CLOSE:
                assert int.from_bytes(frame[11:13], "big") != 541, frame
                closed = True
        if closed:
            self.replace()
        else:
            self.client.send(answer)
        return not closed

    def replace(self) -> None:
        self.client.socket.close()
        self._open()


@pytest.mark.parametrize("seed", range(3))
def test_random_methods_break_nothing(warren: WarrenServer, seed: int) -> None:
    monkey = Monkey(seed)
    victims = [Victim(warren.amqp_port) for _ in range(CLIENTS)]
    for _ in range(BATCHES):
        victim = monkey.random.choice(victims)
        victim.type(monkey.batch())
        if monkey.random.random() < 0.02:
            victim.replace()
        readable = select.select([each.client.socket for each in victims], [], [], 0)[0]
        for each in victims:
            if each.client.socket in readable:
                each.read()
    for victim in victims:
        victim.client.socket.close()
    assert_serves(warren)
