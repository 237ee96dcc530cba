"""`python -m tests.crash`: the torture run; exit code 0 only if nothing was lost or invented."""

from __future__ import annotations

import argparse
import json
import random
import shlex
import shutil
import sys
import tempfile
import time
from pathlib import Path

from .killer import Killer, Options

REPORT_EVERY_S = 10.0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--messages", type=int, default=10_000_000, help="confirmed ones")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--shortest-s", type=float, default=0.2, help="shortest life (0.2)")
    parser.add_argument("--longest-s", type=float, default=5.0, help="longest life (5)")
    parser.add_argument("--data", type=Path, help="an empty directory, kept in any case")
    parser.add_argument("--serve", default="", help="flags for warren serve, in one argument")
    return parser.parse_args()


class Teller:
    """Prints a line now and then."""

    def __init__(self) -> None:
        self._begun = self._told = time.monotonic()

    def __call__(self, line: str) -> None:
        now = time.monotonic()
        if now - self._told >= REPORT_EVERY_S:
            self._told = now
            print(f"{now - self._begun:6.0f} s  {line}", flush=True)


def main() -> int:
    given = _arguments()
    data = given.data or Path(tempfile.mkdtemp(prefix="warren-crash-"))
    options = Options(
        given.kills, given.messages, given.seed, given.shortest_s, given.longest_s,
        serve=shlex.split(given.serve),
    )  # fmt: skip
    print(f"{given.kills} kills, {given.messages} messages, seed {given.seed}", flush=True)
    killer = Killer(options, data, Teller())
    verdict = killer.run()
    for line, count in sorted(killer.lives.said.items()):
        print(f"the server said {count} times: {line}")
    for example in verdict.examples:
        print(example)
    if not verdict.valid:
        print(f"the data directory stays in {data}")
    elif given.data is None:
        shutil.rmtree(data)
    figures = {"valid": verdict.valid, "seed": given.seed, **killer.course.figures()}
    print(json.dumps(figures | verdict.figures()))
    return 0 if verdict.valid else 1


if __name__ == "__main__":
    sys.exit(main())
