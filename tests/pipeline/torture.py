"""`python -m tests.pipeline.torture`: while a stream grows, a query publishes it and a run archives
it; both drivers, their workers and the hub are killed, again and again. Exit code 0 only if the
exchange has got everything once, and the archive has everything once by its manifest."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

import pika
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.process import wait_until
from tests.support.server import WarrenServer, warren_command
from warrenmq.hub.pipeline.client import StreamClient
from warrenmq.hub.pipeline.manifest import StoredCommits, files
from warrenmq.hub.pipeline.options import ServerLogin, read_options
from warrenmq.hub.pipeline.planner import StreamPartition
from warrenmq.hub.pipeline.reading import RangeReader
from warrenmq.hub.pipeline.rows_format import encode, pieces
from warrenmq.hub.pipeline.schema import arrow_schema
from warrenmq.hub.pipeline.transactions import TransactionClient

from .torture_programs import Program
from .torture_query import EXCHANGE, STREAM

ARRIVED = "arrived"
ROWS_AT_ONCE = 1_000
PAUSE_S = 0.5
"""Between two of these: the stream grows as long as there are kills."""
PROGRESS_S = 300.0
"""How long nothing may arrive before the run has failed."""
LOOK_S = 0.3
LONGEST_S = 3.0
"""The longest time between progress and the next kill."""
BODY = {"body": "binary"}


class Publishing:
    """A query that publishes the stream to an exchange, from which another stream gets it."""

    def __init__(self, url: str, directory: Path) -> None:
        query = [sys.executable, "-m", "tests.pipeline.torture_query"]
        command = [*query, url, str(directory / "checkpoint")]
        self.program = Program(command, [], ["--once"], directory / "query.log")
        self._url = url
        self._arrivals = StreamClient(ServerLogin(url, "guest", "guest"), "/", ARRIVED, None)

    def done(self) -> int:
        """Returns how many messages have arrived."""
        return self._arrivals.offsets().next

    def bodies(self) -> Iterable[bytes]:
        offsets = self._arrivals.offsets()
        options = read_options({"url": self._url, "stream": ARRIVED})
        part = StreamPartition(0, offsets.next, offsets.incarnation)
        for batch in RangeReader(options, part, arrow_schema(BODY)).batches():
            yield from batch.column("body").to_pylist()


class Archiving:
    """A run of the job `archive`, as a user starts it."""

    def __init__(self, url: str, directory: Path) -> None:
        self._table = directory / "table"
        run = [*warren_command(), "pipeline", "run", "archive", "--url", url]
        command = [*run, "--stream", STREAM, "--out", str(self._table), "--niceness", "0"]
        follow = ["--follow", "--set", "every_s=0"]
        self.program = Program(command, follow, [], directory / "archive.log")

    def done(self) -> int:
        """Returns how many messages are in the manifest."""
        commits = StoredCommits(self._table)
        return commits[-1].next or 0 if commits else 0

    def bodies(self) -> Iterable[bytes]:
        for path in files(self._table):
            yield from pq.read_table(path, columns=["body"])["body"].to_pylist()


class Run:
    """One run on a server and a directory of its own."""

    def __init__(self, server: WarrenServer, directory: Path, messages: int, seed: int) -> None:
        self._server = server
        self._messages = messages
        self._random = random.Random(seed)
        publishing = Publishing(server.http_url, directory)
        archiving = Archiving(server.http_url, directory)
        self.work: dict[str, Publishing | Archiving] = {
            "publish": publishing,
            "archive": archiving,
        }
        self.kinds: dict[str, Callable[[], bool]] = {
            "driver of publish": publishing.program.kill,
            "workers of publish": publishing.program.kill_workers,
            "driver of archive": archiving.program.kill,
            "workers of archive": archiving.program.kill_workers,
            "hub": self._restart,
        }
        self.killed: Counter[str] = Counter()
        self.sent = 0
        self._began_s = time.monotonic()
        self._done = threading.Event()

    def lasts_s(self) -> float:
        return time.monotonic() - self._began_s

    def declare(self) -> None:
        stream = {"x-queue-type": "stream"}
        with pika.BlockingConnection(pika.URLParameters(self._server.amqp_url)) as connection:
            channel = connection.channel()
            channel.queue_declare(STREAM, durable=True, arguments=stream)
            channel.queue_declare(ARRIVED, durable=True, arguments=stream)
            channel.exchange_declare(EXCHANGE, "topic", durable=True)
            channel.queue_bind(ARRIVED, EXCHANGE, "#")

    def grow(self) -> None:
        """Publishes numbers to the stream until all kills are done, and at least `messages`."""
        client = TransactionClient(ServerLogin(self._server.http_url, "guest", "guest"), "/", "")
        while self.sent < self._messages or not self._done.is_set():
            numbers = [b"%d" % at for at in range(self.sent, self.sent + ROWS_AT_ONCE)]
            rows = encode(pa.record_batch({"body": pa.array(numbers, pa.binary())}), STREAM)
            number = self.sent // ROWS_AT_ONCE
            for place, piece in enumerate(pieces([rows])):
                client.stage("numbers", number, 0, 0, place, piece)
            client.commit("numbers", number, [(0, 0, 1)])
            self.sent += ROWS_AT_ONCE
            self._done.wait(PAUSE_S)
        client.close()

    def torture(self, kills: int) -> None:
        kinds = [*self.kinds] * kills
        self._random.shuffle(kinds)
        for number, kind in enumerate(kinds, 1):
            self._wait_for(1, f"before kill {number}")
            time.sleep(self._random.uniform(0, LONGEST_S))
            wait_until(self.kinds[kind], PROGRESS_S, f"{kind} to kill")
            self.killed[kind] += 1
            done = ", ".join(f"{name} {work.done()}" for name, work in self.work.items())
            line = f"kill {number} of {len(kinds)}, {self.lasts_s():.0f} s: {kind}"
            print(f"{line}; {done} of {self.sent}", flush=True)
        self._done.set()

    def _wait_for(self, more: int, when: str) -> None:
        """Waits until so many more are published, and archived."""
        wanted = {name: work.done() + more for name, work in self.work.items()}

        def have_come() -> bool:
            # Spark gives way to all others, also to who looks at it all the time.
            time.sleep(LOOK_S)
            for work in self.work.values():
                work.program.keep_running()
            return all(self.work[name].done() >= count for name, count in wanted.items())

        wait_until(have_come, PROGRESS_S, f"{wanted}, {when}:")

    def _restart(self) -> bool:
        self._server.kill()
        self._server.start()
        return True

    def finish(self) -> None:
        """Runs query and archive once more, to the end of the stream."""
        for name, work in self.work.items():
            code = work.program.run_once()
            assert code == 0, f"the last run of {name} ended with {code}"

    def verdict(self, name: str) -> bool:
        """Prints how many numbers there are and how many different ones; returns whether these are
        all that were sent, each once."""
        found = Counter(self.work[name].bodies())
        known = len(found.keys() & {b"%d" % at for at in range(self.sent)})
        starts = self.work[name].program.starts
        print(f"{name}: {found.total()} of {self.sent}, {known} of them distinct; {starts} starts")
        return found.total() == known == self.sent

    def kill(self) -> None:
        for work in self.work.values():
            work.program.kill()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.pipeline.torture", description=__doc__)
    parser.add_argument("--kills", type=int, default=5, help="of each kind (5)")
    parser.add_argument("--messages", type=int, default=200_000, help="at least (200000)")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--data", type=Path, help="a new directory, which stays, with all logs")
    given = parser.parse_args()
    with ExitStack() as stack:
        temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="torture-"))
        directory = given.data or Path(temporary)
        directory.mkdir(exist_ok=True)
        server = stack.enter_context(
            WarrenServer(data=directory / "data", command=warren_command())
        )
        run = Run(server, directory, given.messages, given.seed)
        stack.callback(run.kill)
        run.declare()
        grower = threading.Thread(target=run.grow, daemon=True)
        grower.start()
        run.torture(given.kills)
        grower.join()
        run.finish()
        killed = ", ".join(f"{kind} {run.killed[kind]}" for kind in run.kinds)
        print(f"seed {given.seed}, {run.lasts_s():.0f} s, killed: {killed}")
        verdicts = [run.verdict(name) for name in run.work]
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
