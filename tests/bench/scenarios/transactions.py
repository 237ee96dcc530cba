"""Transactions: one persistent message per commit, from one client and from many."""

from __future__ import annotations

import selectors
import time
from functools import partial

from .. import frames
from ..brokers import Broker
from ..calls import counting
from ..client import Address, BenchError, Client, open_many
from ..disk import DiskSync
from ..figures import Figures, Goal
from ..flow import Flow, Standing, fill
from ..measure import percentile
from ..producer import Load
from ..scenario import Scenario, Settings
from ..spent import Spent
from ..worker import Control, Crew
from .confirm import confirmed_flow
from .durable import kept
from .scale import raise_open_files
from .throughput import QUEUES

COMMIT = frames.method(1, 90, 20)
COMMIT_OK = frames.method(1, 90, 21)
READ_BYTES = 4_096
GROUP = 100
CLIENTS = (1, 1_000)
MESSAGES, WINDOW = 10_000, 10_000
CONFIRMS_FASTER = 100
SYNC_FROM_MS = 0.5


class _Committer:
    """One client with one commit under way at a time."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._data = kept().published() + COMMIT
        self._answer = b""
        self._since = 0.0

    def send(self) -> None:
        self._since = time.monotonic()
        self.client.socket.sendall(self._data)

    def receive(self) -> float | None:
        """The seconds that the commit took, once its answer is whole."""
        data = self.client.socket.recv(READ_BYTES)
        self._answer += data
        if not data or not COMMIT_OK.startswith(self._answer):
            raise BenchError(f"not tx.commit-ok: {self._answer[:200]!r}")
        if self._answer != COMMIT_OK:
            return None
        self._answer = b""
        return time.monotonic() - self._since


def _open(address: Address, count: int) -> list[_Committer]:
    raise_open_files(count)
    clients: list[Client] = []
    while len(clients) < count:
        clients += open_many(address, min(GROUP, count - len(clients)))
    for client in clients:
        client.select_transactions()
    return [_Committer(client) for client in clients]


def commit(
    control: Control, address: Address, clients: int, seconds: float, limit: int = 1 << 62
) -> tuple[list[float], float]:
    """Gives the time of each commit in seconds, and the time of all."""
    committers = _open(address, clients)
    control.ready()
    start = time.monotonic()
    times_s, deadline, selector = list[float](), start + seconds, selectors.DefaultSelector()
    for one in committers:
        selector.register(one.client.socket, selectors.EVENT_READ, one)
        one.send()
    waiting = clients
    while waiting:
        for key, _ in selector.select():
            if (took_s := key.data.receive()) is None:
                continue
            times_s.append(took_s)
            if time.monotonic() < deadline and len(times_s) + waiting <= limit:
                key.data.send()
            else:
                waiting -= 1
    took = time.monotonic() - start
    for one in committers:
        one.client.close()
    return times_s, took


def commits(broker: Broker, settings: Settings, *, clients: int) -> Figures:
    """In: commits per second of all clients; the note tells how many share a sync."""
    with Standing(broker, Flow(QUEUES[:1], durable=True)), Crew() as crew:
        disk = DiskSync(broker, len(kept().published()))
        worker = crew.hire(commit, broker.address, clients, settings.seconds)
        spent = Spent(broker)
        with counting(broker.meter.pids) as calls:
            crew.go()
            times_s, seconds = worker.result(settings.seconds * 4 + 30)
        _check_count(broker, len(times_s))
        line = Figures(len(times_s) / seconds, None, spent.cpu_us(len(times_s)), spent.peak_mb())
    line.p50_ms, line.p99_ms = (percentile(times_s, one) * 1e3 for one in (50, 99))
    line.syncs = calls.syncs / seconds
    line.remark(f"{len(times_s) / max(calls.syncs, 1):,.1f} commits a sync")
    line.remark(f"this disk's own sync {disk.median_s() * 1e3:.2f} ms")
    return line


def _check_count(broker: Broker, wanted: int) -> None:
    client = Client(broker.address)
    found = client.declare_queue(QUEUES[0], passive=True)
    client.close()
    if found != wanted:
        raise BenchError(f"{wanted} commits were answered, {found} messages are queued")


def _by_commits(broker: Broker, count: int, limit_s: float) -> float:
    with Standing(broker, Flow(QUEUES[:1], durable=True)), Crew() as crew:
        worker = crew.hire(commit, broker.address, 1, limit_s, count)
        crew.go()
        times_s, seconds = worker.result(limit_s * 2 + 10)
        _check_count(broker, len(times_s))
        # Cut off by the time, the rest would have taken as long for each.
        return float(seconds * count / len(times_s))


def _by_confirms(broker: Broker, count: int, limit_s: float) -> float:
    flow = confirmed_flow(Settings(limit_s), window=WINDOW)
    stream = flow.producers[0][0]
    flow = Flow(flow.queues, ((stream, Load(limit_s, limit=count, window=WINDOW)),), durable=True)
    with Standing(broker, flow):
        outcome = fill(broker, flow)
    if outcome.published != count:
        raise BenchError(f"{outcome.published} of {count} were confirmed in {limit_s:.0f} s")
    return outcome.sent[0].seconds


def against_confirms(broker: Broker, settings: Settings) -> Figures:
    """Seconds for 10,000 messages by confirms; the note compares with a commit per message."""
    disk = DiskSync(broker, len(kept().published()))
    slow_s = _by_commits(broker, MESSAGES, settings.bound_s())
    fast_s = _by_confirms(broker, MESSAGES, settings.bound_s())
    sync_ms = disk.median_s() * 1e3
    line = Figures(MESSAGES / fast_s, seconds=fast_s, job=MESSAGES)
    line.remark(f"{slow_s:.2f} s by a commit for each, {slow_s / fast_s:,.0f} times as long")
    line.remark(f"this disk's own sync {sync_ms:.2f} ms")
    if sync_ms >= SYNC_FROM_MS:
        goal = Goal(f"{CONFIRMS_FASTER} times as fast", slow_s >= CONFIRMS_FASTER * fast_s)
        line.goals.append(goal)
    return line


SCENARIOS = (
    *(Scenario(f"commits-{count}", partial(commits, clients=count)) for count in CLIENTS),
    Scenario("commits-against-confirms", against_confirms),
)
