"""`python -m tests.bench`: loads Warren and RabbitMQ over loopback TCP and prints a table."""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path

from . import brokers
from .brokers import Broker
from .client import BenchError
from .figures import Figures
from .scenario import Scenario, Settings
from .scenarios import ALL
from .spark import missing_spark
from .table import Results, headline, live, markdown
from .worker import WorkerError

OUTPUT_CHARACTERS = 1_500

Start = Callable[[], AbstractContextManager[Broker]]
STARTS: dict[str, list[Start]] = {
    "warren": [brokers.warren],
    "rabbitmq": [brokers.rabbit],
    "both": [brokers.warren, brokers.rabbit],
    # The engine that is in the process, and the one that is a RabbitMQ of one node, or three.
    "engines": [brokers.warren, brokers.warren_on_node],
    "engines-3": [brokers.warren, brokers.warren_on_cluster],
    # An active hub and a standby, beside one hub.
    "hubs": [brokers.warren_on_node, brokers.warrens_on_node],
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names or patterns like 'keys*'")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    parser.add_argument("--seconds", type=float, default=2.0, help="load per scenario (2)")
    parser.add_argument("--messages", type=int, default=1_000_000, help="of whole jobs (1000000)")
    parser.add_argument("--long", action="store_true", help="all rows, and their jobs as a whole")
    parser.add_argument("--repeat", type=int, default=1, help="runs per scenario, median taken")
    parser.add_argument("--broker", choices=[*STARTS], default="both")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    return parser.parse_args()


def _chosen(patterns: list[str] | None, *, long: bool) -> list[Scenario]:
    if not patterns:
        return [one for one in ALL if long or not one.long]
    for pattern in patterns:
        if not fnmatch.filter((one.name for one in ALL), pattern):
            advice = "put spaces between names" if "," in pattern else "--list prints the names"
            sys.exit(f"no scenario is called {pattern}; {advice}")
    return [one for one in ALL if any(fnmatch.fnmatch(one.name, name) for name in patterns)]


def _starts(arguments: argparse.Namespace) -> list[Start]:
    chosen = STARTS[arguments.broker]
    if chosen != [brokers.warren] and (reason := brokers.missing_rabbit()):
        print(f"Without RabbitMQ: {reason}.")
        chosen = [one for one in chosen if one is brokers.warren]
    return chosen


class _Host:
    """Keeps one broker running, and starts another when a scenario wants a fresh one."""

    def __init__(self, start: Start, stack: contextlib.ExitStack) -> None:
        self._start, self._stack = start, stack
        self._broker: Broker | None = None
        self._used = False

    def get(self, *, fresh: bool) -> Broker:
        if self._broker is None or (fresh and self._used):
            self.discard()
            self._broker = self._stack.enter_context(self._start())
        self._used = True
        return self._broker

    def discard(self) -> None:
        self._stack.close()
        self._broker, self._used = None, False


def _first_cause(error: BaseException) -> str:
    """Cleaning up after a failure fails too; what came first is of interest."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error) or repr(error)


def _median(scenario: Scenario, runs: list[Figures]) -> Figures:
    ordered = sorted(runs, key=lambda line: headline(line) or -(line.seconds or 0.0))
    return ordered[(len(ordered) - 1) // 2]


def _failed(host: _Host, scenario: Scenario, error: BaseException, output: str) -> Figures:
    """Tells what went wrong, and lets the next scenario have another broker."""
    reason = _first_cause(error)
    print(f"{scenario.name}: {reason}\n{output[:OUTPUT_CHARACTERS]}")
    host.discard()
    return Figures(note=f"FAILED: {reason.strip().splitlines()[-1]}")


def _run(host: _Host, scenario: Scenario, settings: Settings, repeat: int) -> Figures | None:
    """Gives None for a scenario that the broker can't take part in."""
    runs: list[Figures] = []
    if scenario.spark and (reason := missing_spark()):
        print(f"Without {scenario.name}: {reason}.")
        return None
    for _ in range(repeat):
        try:
            broker = host.get(fresh=scenario.fresh)
        except RuntimeError as error:
            return _failed(host, scenario, error, "")
        if scenario.http and broker.http is None:
            return None
        try:
            runs.append(scenario.run(broker, settings))
        except (BenchError, WorkerError, OSError, RuntimeError) as error:
            return _failed(host, scenario, error, broker.output())
    return _median(scenario, runs)


def _run_all(
    start: Start, scenarios: list[Scenario], arguments: argparse.Namespace
) -> Iterator[tuple[str, Scenario, Figures]]:
    settings = Settings(arguments.seconds, arguments.messages, arguments.long)
    with contextlib.ExitStack() as stack:
        host = _Host(start, stack)
        name = host.get(fresh=True).name
        print(f"\n{name}: {host.get(fresh=False).version()}", flush=True)
        for scenario in scenarios:
            line = _run(host, scenario, settings, arguments.repeat)
            if line is not None:
                print(live(name, scenario, line), flush=True)
                yield name, scenario, line


def _machine() -> str:
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    for line in cpuinfo.read_text().splitlines() if cpuinfo.exists() else ():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
    cores = len(os.sched_getaffinity(0))
    python = f"{platform.python_implementation()} {platform.python_version()}"
    load = os.getloadavg()[0]
    return f"{cores} cores, {model}, Linux {platform.release()}, {python}, load before {load:.1f}"


def main() -> int:
    arguments = _arguments()
    scenarios = _chosen(arguments.only, long=arguments.long or arguments.list)
    if arguments.list:
        print("\n".join(one.name for one in scenarios))
        return 0
    print(_machine())
    results: Results = {}
    names: list[str] = []
    for start in _starts(arguments):
        for name, scenario, line in _run_all(start, scenarios, arguments):
            results[scenario.name, name] = line
            names += [] if name in names else [name]
    print(f"\n{markdown(scenarios, names, results)}")
    if arguments.json:
        rows = [
            {"scenario": scenario, "broker": name, **asdict(line)}
            for (scenario, name), line in results.items()
        ]
        arguments.json.write_text(json.dumps({"machine": _machine(), "rows": rows}, indent=2))
    return 1 if any(line.note.startswith("FAILED") for line in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
