"""A look at every disk that a crash could leave, at each operation of a workload.

    python -m tests.core.store.power --images 100000

runs workloads until so many disks were recovered, prints what was wrong, and ends with 1 if
anything was.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.support.faulty_disk import CHANGES, FaultyDisk, Keep

from .workload import Workload, recover

LIVES = 3


@dataclass
class Survey:
    """Crashes a workload at each change of its disk: power cuts that keep each of `keeps`,
    and a kill."""

    seed: int
    steps: int
    keeps: Iterable[Keep] = tuple(Keep)
    kills: bool = True
    images: int = 0
    faults: list[str] = field(default_factory=list)

    def run(self) -> Survey:
        self._random = random.Random(self.seed)
        self._disk = FaultyDisk()
        self._workload = Workload(self._disk, self.seed)
        self._disk.before = self._look
        self._workload.open()
        for life in range(LIVES):
            self._workload.run(self.steps)
            if life % 2:
                self._workload.settle_down()
                self._workload.stop()
            self._workload.open()
        return self

    @property
    def changes(self) -> int:
        return self._disk.changes

    def _look(self, kind: str, name: str) -> None:
        if kind in CHANGES:
            disks = {keep.value: self._disk.power_cut(keep, self._random) for keep in self.keeps}
            if self.kills:
                disks["killed"] = self._disk.killed()
            for left, disk in disks.items():
                self.images += 1
                where = f"seed {self.seed}, change {self.changes} ({kind} {name}), {left}"
                self.faults += [f"{where}: {fault}" for fault in self._faults(disk)]

    def _faults(self, disk: FaultyDisk) -> list[str]:
        """Recovers twice; the second crash comes before the store is used."""
        try:
            _, found = recover(disk)
            faults = self._workload.history.faults(found)
            _, again = recover(disk.power_cut(self._random.choice(tuple(Keep)), self._random))
        except Exception as error:
            return [f"{type(error).__name__}: {error}"]
        return faults if found == again else [*faults, "another recovery finds something else"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first workload")
    wanted = parser.parse_args()
    logging.disable(logging.CRITICAL)
    images, wrong, seed = 0, 0, wanted.seed
    while images < wanted.images:
        survey = Survey(seed, steps=20 + seed % 30).run()
        images += survey.images
        wrong += len(survey.faults)
        seed += 1
        for fault in survey.faults:
            print(fault)
        print(f"{images} disks of {seed - wanted.seed} workloads, {wrong} faults", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
