"""Reduces errors of Spark, which contain traces of Python and Java, to one line."""

from __future__ import annotations

import re
from typing import Final

from .errors import JobError, PipelineError

_OWN: Final = re.compile(r"warrenmq\.hub\.pipeline\.errors\.(\w+): (.+)")
_PYTHON: Final = re.compile(r"^(\w+(?:\.\w+)*(?:Error|Exception): .+)$", re.MULTILINE)
_JAVA: Final = re.compile(r"^Caused by: (?:[\w$]+\.)*(.+)$", re.MULTILINE)
_CALL: Final = re.compile(r"^An error occurred while calling \S+\n: ")
"""What py4j puts before what Java says."""
_LOST_PYTHON: Final = re.compile(
    r"Python worker exited unexpectedly|pyspark\.daemon's stdout|"
    r"SocketException: (?:Connection reset|Broken pipe)"
)
_LOST: Final = (
    "%s has ended; the system's log says whether it was killed, as for want of memory. Run again: "
    "what is committed stays, and the rest is made up for"
)
_LENGTH_MAX: Final = 500


def explain(error: Exception) -> Exception:
    """Returns an error of Spark as one of the pipeline's, with one line: what a task or a data
    source raised, which process has ended, or the cause that Java names last. Any other error is
    returned as it is."""
    if isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError":
        return JobError(_LOST % "Java, in which Spark runs,")
    if not is_from_spark(error):
        return JobError(str(error)) if isinstance(error, OSError) else error
    text = _CALL.sub("", str(error))
    own = _OWN.findall(text)
    if own:
        name, message = own[-1]
        kinds = {one.__name__: one for one in PipelineError.__subclasses__()}
        return kinds.get(name, JobError)(message.strip())
    if _LOST_PYTHON.search(text):
        return JobError(_LOST % "a Python process of Spark's tasks, each time they were tried,")
    lines = _PYTHON.findall(text) or _JAVA.findall(text) or [type(error).__name__, *_lines(text)]
    return JobError(lines[-1].strip()[:_LENGTH_MAX])


def is_from_spark(error: Exception) -> bool:
    return type(error).__module__.startswith(("pyspark.", "py4j."))


def _lines(text: str) -> list[str]:
    """Returns the first line that is not empty."""
    return [line for line in text.splitlines() if line.strip()][:1]
