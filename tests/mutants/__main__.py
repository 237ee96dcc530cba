"""`python -m tests.mutants`: breaks the product in small ways and counts what the tests notice.

What is known stands in a file, so that a run goes on where the last one stopped. A result is true
of a module's text: after a change of tests alone, name another file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from .mutations import Mutation, chosen
from .suites import suites
from .workshop import Workshop

ROOT = Path(__file__).parents[2]
AREAS = ("app", "core", "hub")
Mutant = tuple[str, str, Mutation]
"""Its rank, which is its name in the file of results; the module's path; what is changed."""


class Run:
    """The results of a run, and the time that each suite takes when nothing is broken."""

    def __init__(self, results: Path, limit_s: float) -> None:
        self._path = results
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._usual_s: dict[str, float] = {}
        lines = results.read_text().splitlines() if results.exists() else []
        self.known: dict[str, str] = {row["rank"]: row["result"] for row in map(json.loads, lines)}

    def try_one(self, workshop: Workshop, mutant: Mutant) -> None:
        rank, module, mutation = mutant
        source = (ROOT / module).read_text()
        begun = time.monotonic()
        result = "survived"
        for suite in suites(ROOT, module):
            limit_s = self._limit_of(workshop, suite)
            workshop.put(module, mutation.applied(source))
            try:
                result = _result(workshop, suite, limit_s)
            finally:
                workshop.put(module, source)
            if result != "survived":
                break
        self._note(rank, result, f"{module}:{mutation}", time.monotonic() - begun)

    def _limit_of(self, workshop: Workshop, suite: str) -> float:
        """Seconds, by a run of the suite with nothing broken; 0 where it fails even so."""
        if suite not in self._usual_s:
            begun = time.monotonic()
            try:
                wrong = "fails" if workshop.is_failing(suite, self._limit_s) else ""
            except subprocess.TimeoutExpired:
                wrong = f"takes more than {self._limit_s:g} s"
            if wrong:
                print(f"left out: {suite} {wrong} with nothing broken", flush=True)
            self._usual_s[suite] = 0 if wrong else time.monotonic() - begun
        usual_s = self._usual_s[suite]
        return usual_s and 20 + 4 * usual_s

    def _note(self, rank: str, result: str, what: str, took_s: float) -> None:
        row = {"rank": rank, "result": result, "mutant": what, "seconds": round(took_s, 1)}
        with self._lock, self._path.open("a") as file:
            self.known[rank] = result
            file.write(json.dumps(row) + "\n")
            print(f"{took_s:6.1f} s  {result:8}  {what}", flush=True)


def _result(workshop: Workshop, suite: str, limit_s: float) -> str:
    try:
        return "killed" if limit_s and workshop.is_failing(suite, limit_s) else "survived"
    except subprocess.TimeoutExpired:
        return "timeout"


def mutants(seed: int, below: str) -> list[Mutant]:
    """All that the seed chooses, in an order of which every beginning is spread over the tree."""
    return sorted(_each(seed, below))


def _each(seed: int, below: str) -> Iterator[Mutant]:
    for area in AREAS:
        for path in sorted((ROOT / area).rglob("*.py")):
            module = path.relative_to(ROOT).as_posix()
            if module.startswith(below):
                for rank, mutation in chosen(module, path.read_text(), seed):
                    yield rank, module, mutation


def report(made: list[Mutant], known: dict[str, str]) -> None:
    tried = [(known[rank], module, one) for rank, module, one in made if rank in known]
    for area in AREAS:
        counts = Counter(result for result, module, _ in tried if module.startswith(f"{area}/"))
        of_area = sum(module.startswith(f"{area}/") for _, module, _ in made)
        print(
            f"{area:5} {of_area:4} mutants: {counts['killed']} killed, {counts['timeout']} by the "
            f"time limit, {counts['survived']} survived, {of_area - counts.total()} not tried"
        )
    for result, module, one in sorted(tried, key=lambda row: (row[1], row[2].line)):
        if result == "survived":
            print(f"survived  {module}:{one}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time (1)")
    parser.add_argument("--limit", type=int, default=None, help="how many to try now (all)")
    parser.add_argument("--below", default="", help="of these modules alone, as core/queue")
    parser.add_argument("--limit-s", type=float, default=600.0, help="longest suite allowed (600)")
    parser.add_argument("--results", type=Path, default=ROOT / ".cache" / "mutants.jsonl")
    return parser.parse_args()


def main() -> None:
    given = _arguments()
    given.results.parent.mkdir(parents=True, exist_ok=True)
    run = Run(given.results, given.limit_s)
    made = mutants(given.seed, given.below)
    waiting = [mutant for mutant in made if mutant[0] not in run.known][: given.limit]
    print(f"{len(made)} mutants, {len(waiting)} to be tried now", flush=True)
    with tempfile.TemporaryDirectory(prefix="warren-mutants-") as place:
        free: SimpleQueue[Workshop] = SimpleQueue()
        for number in range(given.jobs):
            free.put(Workshop(ROOT, Path(place) / str(number)))

        def work(mutant: Mutant) -> None:
            workshop = free.get()
            try:
                run.try_one(workshop, mutant)
            finally:
                free.put(workshop)

        with ThreadPoolExecutor(given.jobs) as threads:
            for done in [threads.submit(work, mutant) for mutant in waiting]:
                done.result()
    report(made, run.known)


if __name__ == "__main__":
    main()
