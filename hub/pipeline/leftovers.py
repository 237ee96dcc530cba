"""Removes files in a job's directory that a killed task or run has left, and that no commit
names."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Final

GRACE_S: Final = 3600.0
"""How old a file must be: a younger one may be that of a commit to come."""
_DATA: Final = re.compile(r"[0-9a-f]{32}\.parquet")
MANIFEST_FOLDER: Final = "_manifest"
"""Every directory of a job has one."""
_COMMIT: Final = re.compile(r"\d{12}\.\d+\.tmp")
"""Names that jobs give. No other file is ever removed."""


class Leftovers:
    """Removes such files, now and then: a table may have very many files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._due_s = 0.0

    def remove(self, named: Callable[[], Container[str]]) -> int:
        """Removes files that are not among `named()`, which are paths below the directory; returns
        how many. Raises `OSError`."""
        now_s = time.time()
        if now_s < self._due_s:
            return 0
        self._due_s = now_s + GRACE_S
        kept = named()
        found = [path for path in self._old(now_s) if self._name(path) not in kept]
        for path in found:
            path.unlink(missing_ok=True)
        return len(found)

    def _old(self, now_s: float) -> Iterator[Path]:
        for place, folders, names in os.walk(self._directory):
            # The directory of another job has files of the same names: its own manifest has them.
            folders[:] = [one for one in folders if not Path(place, one, MANIFEST_FOLDER).exists()]
            for name in names:
                path = Path(place, name)
                is_ours = _DATA.fullmatch(name) or _COMMIT.fullmatch(name)
                if is_ours and path.stat().st_mtime < now_s - GRACE_S:
                    yield path

    def _name(self, path: Path) -> str:
        return path.relative_to(self._directory).as_posix()
