"""All jobs, by name. A new one is a file here, and a line in `JOBS`."""

from __future__ import annotations

import difflib
from typing import Any, Final

from ..errors import OptionError
from .archive import ARCHIVE
from .delivery_health import DELIVERY_HEALTH
from .job import Job
from .near_duplicates import NEAR_DUPLICATES
from .replay import REPLAY
from .rollup import ROLLUP
from .trending import TRENDING

JOBS: Final[dict[str, Job[Any]]] = {
    job.name: job for job in (ARCHIVE, ROLLUP, DELIVERY_HEALTH, NEAR_DUPLICATES, TRENDING, REPLAY)
}


def find_job(name: str) -> Job[Any]:
    """Returns the job of this name; raises `OptionError` with the nearest name if there is none."""
    if name not in JOBS:
        near = difflib.get_close_matches(name, JOBS, 1, 0.0)[0]
        raise OptionError(
            f"job '{name}' is unknown; did you mean '{near}'? There are {', '.join(JOBS)}"
        )
    return JOBS[name]
