"""`python -m tests.mutants`: breaks the product in small ways and counts what the tests notice.

What is known stands in a file, so that a run goes on where the last one stopped; which tests run
which lines is traced once and stands beside it. A result is true of a module's text: after a change
of tests alone, name another file.
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
from .traced_lines import TracedLines, is_recorded
from .workshop import Workshop

ROOT = Path(__file__).parents[2]
AREAS = ("app", "core", "hub")
Mutant = tuple[str, str, Mutation]
"""Its rank, which is its name in the file of results; the module's path; what is changed."""
UNNOTICED = "unnoticed"
"""The result of a mutant that only the suites with servers may still notice."""


class Run:
    """The results of a run, and the time that each suite takes when nothing is broken."""

    def __init__(
        self, results: Path, limit_s: float, traced: TracedLines, *, with_servers: bool
    ) -> None:
        self._path = results
        self._traced = traced
        self._limit_s = limit_s
        self._with_servers = with_servers
        self._lock = threading.Lock()
        self._usual_s: dict[str, float] = {}
        self.known = _results(results)

    def try_one(self, workshop: Workshop, mutant: Mutant) -> None:
        rank, module, mutation = mutant
        source = (ROOT / module).read_text()
        begun = time.monotonic()
        paths = suites(ROOT, module)
        tests = self._traced.tests(module, *mutation.lines, paths)
        if tests:
            paths = [path for path in paths if not is_recorded(path)]
        changed, result = mutation.applied(source), UNNOTICED
        workshop.put(module, changed)
        try:
            if self.known.get(rank) != UNNOTICED and tests:
                result = _result(workshop, tests, self._limit_s, UNNOTICED)
            if result == UNNOTICED and self._with_servers:
                workshop.put(module, source)
                paths = [path for path in paths if self._usual(workshop, path)]
                workshop.put(module, changed)
                limit_s = 60 + 4 * sum(self._usual_s[one] for one in paths)
                result = _result(workshop, paths, limit_s, "survived")
        finally:
            workshop.put(module, source)
        self._note(rank, result, f"{module}:{mutation}", time.monotonic() - begun)

    def _usual(self, workshop: Workshop, path: str) -> float:
        """Seconds that a suite takes with nothing broken; 0 if it fails or takes too long then."""
        if path not in self._usual_s:
            begun = time.monotonic()
            try:
                wrong = "fails" if workshop.is_failing([path], self._limit_s) else ""
            except subprocess.TimeoutExpired:
                wrong = f"takes more than {self._limit_s:g} s"
            if wrong:
                print(f"left out: {path} {wrong} with nothing broken", flush=True)
            self._usual_s[path] = 0 if wrong else time.monotonic() - begun
        return self._usual_s[path]

    def _note(self, rank: str, result: str, what: str, took_s: float) -> None:
        row = {"rank": rank, "result": result, "mutant": what, "seconds": round(took_s, 1)}
        with self._lock, self._path.open("a") as file:
            self.known[rank] = result
            file.write(json.dumps(row) + "\n")
            print(f"{took_s:6.1f} s  {result:8}  {what}", flush=True)


def _result(workshop: Workshop, paths: list[str], limit_s: float, if_passed: str) -> str:
    try:
        return "killed" if paths and workshop.is_failing(paths, limit_s) else if_passed
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
            f"time limit, {counts['survived']} survived, {counts[UNNOTICED]} unnoticed without "
            f"servers, {of_area - counts.total()} not tried"
        )
    for result, module, one in sorted(tried, key=lambda row: (row[1], row[2].line)):
        if result in ("survived", UNNOTICED):
            print(f"{result:9} {module}:{one}")


def _results(path: Path) -> dict[str, str]:
    """Returns what is known already, by rank."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {row["rank"]: row["result"] for row in map(json.loads, lines)}


def _recorded(waiting: list[Mutant]) -> list[str]:
    """Returns the tests to be traced, none twice: a file in a folder that is traced is left out."""
    found = {path for _, module, _ in waiting for path in suites(ROOT, module) if is_recorded(path)}
    return sorted(
        path
        for path in found
        if not any(path != other and path.startswith(f"{other}/") for other in found)
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time (1)")
    parser.add_argument("--limit", type=int, default=None, help="how many to try now (all)")
    parser.add_argument("--below", default="", help="of these modules alone, as core/queue")
    parser.add_argument("--limit-s", type=float, default=600.0, help="longest suite allowed (600)")
    parser.add_argument(
        "--without-servers", action="store_true",
        help="leave out tests that start servers; a later run goes on with what is unnoticed",
    )  # fmt: skip
    parser.add_argument("--results", type=Path, default=ROOT / ".cache" / "mutants.jsonl")
    return parser.parse_args()


def main() -> None:
    given = _arguments()
    given.results.parent.mkdir(parents=True, exist_ok=True)
    made = mutants(given.seed, given.below)
    known = _results(given.results)
    open_results = {None} if given.without_servers else {None, UNNOTICED}
    waiting = [mutant for mutant in made if known.get(mutant[0]) in open_results][: given.limit]
    print(f"{len(made)} mutants, {len(waiting)} to be tried now", flush=True)
    with tempfile.TemporaryDirectory(prefix="warren-mutants-") as place:
        workshops = [Workshop(ROOT, Path(place) / str(number)) for number in range(given.jobs)]
        traced = given.results.with_suffix(".traced")
        if not traced.exists():
            workshops[0].trace(_recorded(made), traced)
        run = Run(
            given.results, given.limit_s, TracedLines(traced),
            with_servers=not given.without_servers,
        )  # fmt: skip
        free: SimpleQueue[Workshop] = SimpleQueue()
        for workshop in workshops:
            free.put(workshop)

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
