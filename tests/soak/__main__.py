"""`python -m tests.soak`: mixed load, rests and restarts; exit code 1 when something grows."""

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

from .bounds import Bounds, exceeded
from .run import Options, Soak


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3_600.0, help="about so long (3600)")
    parser.add_argument("--rate", type=float, default=2_000.0, help="messages a second (2000)")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--stall-ms", type=float, default=Bounds.stall_ms, help="allowed stall")
    parser.add_argument("--data", type=Path, help="an empty directory, never deleted")
    parser.add_argument("--serve", default="", help="flags for warren serve, in one argument")
    return parser.parse_args()


def main() -> int:
    given = _arguments()
    data = given.data or Path(tempfile.mkdtemp(prefix="warren-soak-"))
    options = Options.of(given.seconds, given.seed, given.rate, shlex.split(given.serve))
    begun = time.monotonic()

    def tell(line: str) -> None:
        print(f"{time.monotonic() - begun:6.0f} s  {line}", flush=True)

    tell(f"{options.rounds} rounds, {options.rate:,.0f} messages a second, seed {given.seed}")
    soak = Soak(options, data, tell)
    verdict = soak.run()
    broken = exceeded(soak.course, Bounds(stall_ms=given.stall_ms))
    for line, count in sorted(soak.lives.said.items()):
        print(f"the server said {count} times: {line}")
    for line in [*verdict.examples, *broken]:
        print(line)
    valid = verdict.valid and not broken
    if not valid:
        print(f"the data directory stays in {data}")
    elif given.data is None:
        shutil.rmtree(data)
    figures = {"valid": valid, "seed": given.seed, "seconds": round(time.monotonic() - begun)}
    print(json.dumps({**figures, **soak.course.figures(), **verdict.figures()}))
    return 0 if valid else 1


if __name__ == "__main__":
    sys.exit(main())
