"""`python -m tests.cluster.torture`: three RabbitMQ nodes, the hub and PostgreSQL under load.

Nodes, hub and database are killed, a node is cut off, a node's disk is full, again and again. Exit
code 0 only if everything that was confirmed came to each callback, always with the same id.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import httpx

from tests.conformance.webhooks import form
from tests.support.http import Answer, Callback
from tests.support.hub_on_rabbitmq import HubOnRabbitMQ, prepare
from tests.support.postgresql import PostgreSQLServer
from tests.support.postgresql import missing as missing_postgresql
from tests.support.process import wait_until
from tests.support.rabbitmq import missing as missing_rabbitmq
from tests.support.rabbitmq_cluster import RabbitMQCluster
from tests.support.server import warren_command

from .faults import (
    DatabaseKilled,
    DiskFull,
    Fault,
    HubKilled,
    NodeCutOff,
    NodeKilled,
    on_small_disk,
)
from .load import AUTH, Arrivals, Load
from .network import HOSTS, become_private, is_private

EXCHANGE = "torture"
DISK_BYTES = 512 << 20
PROGRESS_S = 300.0
"""How long there may be no confirm, or no delivery, before the run has failed."""
PROGRESS = 20
"""Confirms and deliveries between a heal and the next fault."""
SHORTEST_S, LONGEST_S = 1.0, 20.0
"""How long a fault lasts."""
LOOK_S = 0.1
SUBSCRIPTIONS: Sequence[dict[str, str]] = ({"order": "strict"}, {"in_flight": "20"}, {})


class Run:
    def __init__(self, given: argparse.Namespace, stack: ExitStack) -> None:
        self._random = random.Random(given.seed)
        self._seconds = given.longest_s
        self.cluster = RabbitMQCluster("rabbitmq_management", hosts=HOSTS if is_private() else ())
        first, *others = self.cluster.nodes
        disks = [stack.enter_context(on_small_disk(first, DISK_BYTES))] if not os.getuid() else []
        self.database = stack.enter_context(PostgreSQLServer())
        stack.enter_context(self.cluster)
        prepare(first)
        flags = ["--database", self.database.create()]
        self.hub = stack.enter_context(
            HubOnRabbitMQ(first, flags, others=others, command=warren_command())
        )
        callbacks = [stack.enter_context(Callback()) for _ in SUBSCRIPTIONS]
        self._subscribe(callbacks)
        self.arrivals = Arrivals(callbacks)
        self.load = Load(self.hub.http_url, self.cluster.nodes, EXCHANGE, given.pause_s)
        nodes = self.cluster.nodes, self._random
        self.faults: Sequence[Fault] = (
            NodeKilled(*nodes), NodeCutOff(*nodes), HubKilled(self.hub),
            DatabaseKilled(self.database), *(DiskFull(first, disk) for disk in disks),
        )  # fmt: skip
        self.struck: Counter[str] = Counter()
        self.pauses_s: dict[str, float] = {}

    def _subscribe(self, callbacks: Sequence[Callback]) -> None:
        with httpx.Client(base_url=self.hub.http_url, auth=AUTH, timeout=PROGRESS_S) as http:
            query = {"amqp.exchange_type": "topic"}
            http.put(f"/endpoint/x/{EXCHANGE}", params=query).raise_for_status()
            for callback, options in zip(callbacks, SUBSCRIPTIONS, strict=True):
                callback.script(Answer(500), Answer(500))
                asked = form("subscribe", callback.url, "#", **options)
                http.post(f"/subscribe/x/{EXCHANGE}", data=asked).raise_for_status()

    def torture(self, count: int) -> None:
        kinds = [self.faults[number % len(self.faults)] for number in range(count)]
        self._random.shuffle(kinds)
        began_s = time.monotonic()
        for number, fault in enumerate(kinds, 1):
            self._await_progress(f"before fault {number}")
            hit = fault.strike()
            self._look(self._random.uniform(SHORTEST_S, self._seconds))
            fault.heal()
            self._await_progress(f"after fault {number}, {fault.name}")
            self.struck[fault.name] += 1
            pause_s, self.arrivals.longest_pause_s = self.arrivals.longest_pause_s, 0.0
            self.pauses_s[fault.name] = max(pause_s, self.pauses_s.get(fault.name, 0.0))
            told = f"fault {number} of {count}, {time.monotonic() - began_s:.0f} s: {fault.name}"
            counts = f"{len(self.load.confirmed)} confirmed, {self.arrivals.count} delivered"
            print(f"{told} ({hit}); {counts}, longest pause {pause_s:.1f} s", flush=True)

    def _look(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            self._await(lambda: True)

    def _await(self, done: Callable[[], bool]) -> bool:
        time.sleep(LOOK_S)
        self.arrivals.read()
        if not self.hub.running:
            return False
        return done()

    def _await_progress(self, when: str) -> None:
        confirmed = len(self.load.confirmed) + PROGRESS
        self._wait_for(lambda: len(self.load.confirmed) >= confirmed, f"confirms {when}")
        delivered = self.arrivals.count + PROGRESS
        self._wait_for(lambda: self.arrivals.count >= delivered, f"deliveries {when}")

    def _wait_for(self, done: Callable[[], bool], what: str) -> None:
        try:
            wait_until(lambda: self._await(done), PROGRESS_S, what)
        except TimeoutError:
            print(self.hub.output()[-5_000:], self.load.failures, sep="\n")
            raise

    def finish(self) -> bool:
        """Ends the load, waits for what is missing, and prints the verdict."""
        self.load.end()
        confirmed = self.load.confirmed
        try:
            wait_until(lambda: not self.arrivals.missing(confirmed), PROGRESS_S, "all deliveries")
        except TimeoutError as error:
            print(error)
        missing, changed = self.arrivals.missing(confirmed), self.arrivals.with_other_ids()
        failures = ", ".join(f"{why} {count}" for why, count in sorted(self.load.failures.items()))
        print(f"without a confirm: {failures or 'none'}")
        pauses = ", ".join(f"{name} {pause_s:.0f} s" for name, pause_s in self.pauses_s.items())
        print(f"longest pauses of deliveries: {pauses}")
        print(
            f"{len(confirmed)} confirmed, {self.arrivals.count} deliveries to"
            f" {len(SUBSCRIPTIONS)} callbacks, {self.arrivals.repeats()} of them repeated;"
            f" lost {len(missing)}, with another id {len(changed)}"
        )
        return not missing and not changed


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.torture", description=__doc__)
    parser.add_argument("--faults", type=int, default=40)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--pause-s", type=float, default=0.01, help="between publishes (0.01)")
    parser.add_argument("--longest-s", type=float, default=LONGEST_S, help="longest fault (20)")
    return parser.parse_args()


def main() -> int:
    given = _arguments()
    if reason := missing_rabbitmq() or missing_postgresql():
        sys.exit(reason)
    become_private("tests.cluster.torture")
    began_s = time.monotonic()
    with ExitStack() as stack:
        run = Run(given, stack)
        how = "in a network of their own" if is_private() else "halted instead of cut off"
        print(f"seed {given.seed}: three nodes, {how}, {', '.join(x.name for x in run.faults)}")
        run.load.start()
        stack.callback(run.load.end)
        run.torture(given.faults)
        is_kept = run.finish()
        struck = ", ".join(f"{name} {count}" for name, count in sorted(run.struck.items()))
        print(f"seed {given.seed}, {time.monotonic() - began_s:.0f} s, {struck}")
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
