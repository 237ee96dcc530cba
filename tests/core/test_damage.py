"""A directory with all kinds of queues is damaged at random: a start serves what it can or says in
a line why not, and no later start has less.

`WARREN_DAMAGE_CASES` says how many cases there are.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.core.life import Life
from tests.support.amqp import Reply
from warrenmq.app.unserved import unserved_data
from warrenmq.core.errors import ConfigError
from warrenmq.core.store import checkpoint, checkpointer
from warrenmq.core.store.disk import RealDisk
from warrenmq.core.store.location import RecordLocation
from warrenmq.core.store.offline import OfflineLog, verify
from warrenmq.core.store.record import FILE_HEADER_BYTES, Record, RecordKind, scan
from warrenmq.core.store.segment import segment_name

CASES = int(os.environ.get("WARREN_DAMAGE_CASES", "8"))
SEGMENT_BYTES = 6_000
QUEUES: Mapping[str, Mapping[str, object]] = {
    "classic": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
    "ranked": {"x-max-priority": 5},
    "timed": {"x-message-ttl": 10**9},
    "bounded": {"x-max-length": 10**6, "x-overflow": "reject-publish"},
    "stream": {"x-queue-type": "stream"},
    "quorum": {"x-queue-type": "quorum", "x-delivery-limit": 10},
    "dead": {},
}
PUBLISHED = {b"%06d" % number * times for number in range(240) for times in (1, 5, 40)}
Found = dict[str, Counter[bytes]]


def fill(directory: Path, seed: int) -> None:
    """Several lives of a broker, the last one killed."""
    chance = random.Random(seed)
    life = Life(directory, segment_bytes=SEGMENT_BYTES)
    for name, arguments in QUEUES.items():
        life.declare(name, arguments=arguments)
        life.client.call("Queue.Bind", queue=name, exchange="amq.fanout")
    life.client.call(
        "Exchange.Declare", exchange="later", exchange_type="x-delayed-message", durable=True,
        arguments={"x-delayed-type": "fanout"},
    )  # fmt: skip
    for number in range(240):
        act(life, chance, number)
        if number % 80 == 79:
            (life.restart if chance.random() < 0.5 else life.crash)()
    life.write()
    life.abandon()


def act(life: Life, chance: random.Random, number: int) -> None:
    body = b"%06d" % number * chance.choice([1, 5, 40])
    properties: dict[str, object] = {"delivery_mode": 2, "priority": number % 6}
    if number % 9 == 0:
        properties["expiration"] = "100000000"
    exchange, key = chance.choice([("", chance.choice(list(QUEUES))), ("amq.fanout", "")])
    if number % 20 == 0:
        exchange, properties["headers"] = "later", {"x-delay": 10**9}
    life.publish(body, key, properties, exchange=exchange)
    name = chance.choice([name for name in QUEUES if name != "stream"])
    taken = life.get(name, ack=False)
    if taken is not None:
        tag = taken["delivery_tag"]
        if chance.random() < 0.6:
            life.client.send("Basic.Ack", delivery_tag=tag)
        else:
            life.client.send("Basic.Reject", delivery_tag=tag, requeue=chance.random() < 0.5)
    life.turns(2, each_ms=10)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Each has several segments that are complete, for all that a checkpoint is as large as one."""
    found = [tmp_path_factory.mktemp("images") / str(seed) for seed in range(3)]
    for seed, directory in enumerate(found):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(checkpointer, "LOG_SHARE", 0)
            fill(directory, seed)
        assert len(list(directory.glob("*.state"))) == 2
        life = opened(shutil.copytree(directory, directory.with_suffix(".sound")))
        assert served(life).keys() >= QUEUES.keys()
        life.abandon()
    return found


# -- what happens to it


def flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 1, 5, 50])):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def cut(path: Path, chance: random.Random) -> None:
    os.truncate(path, chance.randrange(path.stat().st_size))


def zero(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    start = chance.randrange(len(data))
    end = min(len(data), start + chance.choice([1, 512, 4096]))
    data[start:end] = bytes(end - start)
    path.write_bytes(data)


def remove(path: Path, chance: random.Random) -> None:
    path.unlink()


def empty(path: Path, chance: random.Random) -> None:
    path.write_bytes(b"")


def extend(path: Path, chance: random.Random) -> None:
    with path.open("ab") as file:
        file.write(chance.randbytes(chance.randint(1, 5_000)))


def insert(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    at = chance.randrange(len(data))
    path.write_bytes(data[:at] + chance.randbytes(7) + data[at:])


def duplicate(path: Path, chance: random.Random) -> None:
    number = chance.choice([0, 1, 5, 99_999])
    path.with_name(f"{number:012d}{path.suffix}").write_bytes(path.read_bytes())


def swap(path: Path, chance: random.Random) -> None:
    other = chance.choice(sorted(path.parent.glob(f"*{path.suffix}")))
    data = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(data)


DAMAGES: list[Callable[[Path, random.Random], None]] = [
    flip, flip, flip, cut, zero, zero, remove, empty, extend, insert, duplicate, swap,
]  # fmt: skip


def damage(directory: Path, chance: random.Random) -> list[str]:
    """Returns a description of the damage."""
    done = []
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        files = sorted(path for path in directory.iterdir() if path.stat().st_size)
        path, how = chance.choice(files), chance.choice(DAMAGES)
        done.append(f"{how.__name__} {path.name}")
        how(path, chance)
    return done


# -- what a start makes of it


def served(life: Life) -> Found:
    """All that consumers get, unacknowledged, and what is in quarantine; a crash follows."""
    found: Found = {
        "": Counter({b"%d" % key: n for key, n in life.store.recovered.quarantine.items()})
    }
    vhost = life.broker.vhosts.get("/")
    if vhost is None:
        return found
    client = life.connect()
    replies: list[Reply] = []
    for channel, name in enumerate(vhost.queues, start=2):
        client.send("Channel.Open", channel)
        client.send("Basic.Qos", channel, prefetch_count=60_000)
        arguments = {"x-stream-offset": "first"} if name == "stream" else {}
        replies += client.send(
            "Basic.Consume", channel, queue=name, consumer_tag=name, arguments=arguments
        )
    for _ in range(60):
        life.turns(1, each_ms=1)
        replies += client.come()
    for reply in replies:
        if reply.name == "Basic.Deliver":
            found.setdefault(reply["consumer_tag"], Counter())[reply.body] += 1
    return found


def snapshot(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def refused(directory: Path) -> str:
    """Why no start is possible, empty if one is."""
    try:
        OfflineLog(RealDisk(directory))
        opened(directory).abandon()
    except ConfigError as error:
        return str(error)
    return ""


def opened(directory: Path) -> Life:
    return Life(directory, segment_bytes=SEGMENT_BYTES)


@pytest.mark.parametrize("seed", range(CASES))
def test_sound_messages_are_served_at_every_start(
    images: list[Path], tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    image, directory = images[seed % len(images)], tmp_path / "log"
    shutil.copytree(image, directory)
    done = damage(directory, chance)
    before = snapshot(directory)
    list(verify(RealDisk(directory)))
    refusal = refused(directory)
    if refusal:
        assert "\n" not in refusal and (".log" in refusal or ".state" in refusal), done
        assert snapshot(directory) == before, done
        return
    life = opened(directory)
    first = served(life)
    for name in first.keys() - {""}:
        assert first[name].keys() <= PUBLISHED, (done, name)
    for start in range(3):
        if start == 2:
            life.client.send("Connection.Close", reply_code=200)
            life.stop()
        else:
            life.abandon()
        life = opened(directory)
        again = served(life)
        for name, bodies in first.items():
            assert not bodies - again.get(name, Counter()), (done, start, name)
    life.abandon()


# -- where only segments that a checkpoint speaks of are damaged


def kept(directory: Path) -> dict[tuple[int, int], tuple[int, int]]:
    """Where each message that is to be kept stands, segment and offset, by queue id and number."""
    log = OfflineLog(RealDisk(directory))
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for queue_id in log.counts():
        for messages in log.messages(queue_id):
            for position in range(messages.low, messages.high):
                place = messages.entry.batch.location
                assert isinstance(place, RecordLocation)
                number = messages.entry.sequence(position)
                found[queue_id, number] = place.segment, place.offset
    return found


def sound(directory: Path) -> set[tuple[int, int]]:
    """Where records of messages stand that are as they were written."""
    return {
        (int(path.stem), found.offset)
        for path in directory.glob("*.log")
        for found in scan(int(path.stem), memoryview(path.read_bytes()))
        if isinstance(found, Record) and found.kind == RecordKind.MESSAGES
    }


def indexed(directory: Path) -> list[Path]:
    """The segments that the newest checkpoint speaks of."""
    newest = checkpoint.read_newest(RealDisk(directory))
    assert newest is not None
    return [directory / segment_name(number) for number in sorted(newest.segments)]


def spoil_index(path: Path, chance: random.Random, how: Callable[[bytearray, int], None]) -> None:
    """Damages some records of messages and the index behind them."""
    data = bytearray(path.read_bytes())
    scanned = scan(int(path.stem), memoryview(bytes(data)))
    records = [found for found in scanned if isinstance(found, Record)]
    messages = [found for found in records if found.kind == RecordKind.MESSAGES]
    for found in chance.sample(messages, min(len(messages), chance.choice([1, 1, 2, 5]))):
        how(data, chance.randrange(found.offset, found.end))
    (index,) = [found for found in records if found.kind == RecordKind.INDEX]
    how(data, chance.randrange(index.offset, index.end))
    path.write_bytes(data)


def flip_one(data: bytearray, at: int) -> None:
    data[at] ^= 1 << at % 8


def clear_block(data: bytearray, at: int) -> None:
    start = max(FILE_HEADER_BYTES, at - 200)
    end = min(len(data), at + 200)
    data[start:end] = bytes(end - start)


@pytest.mark.parametrize("how", [flip_one, clear_block])
@pytest.mark.parametrize("seed", sorted({*range(CASES), 47, 219}))
def test_records_keep_their_positions_in_a_rebuilt_index(
    images: list[Path],
    tmp_path: Path,
    seed: int,
    how: Callable[[bytearray, int], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What is sound and unsettled is served; nothing settled is, unless the log says so. In 47 and
    219 a record's damaged number would be a sound one elsewhere."""
    chance = random.Random(seed)
    directory = tmp_path / "log"
    shutil.copytree(images[seed % len(images)], directory)
    before = kept(directory)
    segments = indexed(directory)  # How many there are depends on when compaction ran.
    for path in chance.sample(segments, min(3, len(segments))):
        spoil_index(path, chance, how)
    there = sound(directory)
    expected = {message for message, place in before.items() if place in there}
    for _ in range(3):
        after = kept(directory).keys()
        assert not expected - after
        assert not (after - expected) & before.keys() or how is not flip_one
        if "messages are redelivered" not in caplog.text:
            assert after <= before.keys()
            assert after == expected or how is not flip_one
        opened(directory).abandon()
        expected = set(after)


@pytest.mark.parametrize("kept_share", [0, 2])
def test_a_cut_segment_is_reported(images: list[Path], tmp_path: Path, kept_share: int) -> None:
    directory = tmp_path / "log"
    shutil.copytree(images[0], directory)
    for path in indexed(directory):
        os.truncate(path, path.stat().st_size // 4 * kept_share)
    names = {path.name for path in indexed(directory)}
    for _ in range(2):
        life = opened(directory)
        served(life)
        assert life.store.recovered.unreadable.keys() & names
        assert unserved_data(life.broker)
        life.abandon()


def test_errors_say_what_to_do(images: list[Path], tmp_path: Path) -> None:
    directory = tmp_path / "log"
    shutil.copytree(images[0], directory)
    path = indexed(directory)[0]
    path.unlink()
    assert "Restore that file from a copy" in refused(directory)
    path.touch()
    opened(directory).abandon()
    other = indexed(directory)[1]
    shutil.copy(other, directory / "000000099999.log")
    assert "Restore the file of that name" in refused(directory)
