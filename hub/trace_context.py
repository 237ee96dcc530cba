"""W3C Trace Context: the headers that tie a message to the request that caused it.

Warren passes them on unchanged, from HTTP requests through the headers of AMQP messages to the
requests of webhooks. What does not follow the recommendation is dropped, as it demands (3.2.2).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
NAMES: Final = (TRACEPARENT, TRACESTATE)
MAX_TRACESTATE: Final = 512
"""Characters of a state that is passed on (3.3.1.5)."""
# Versions above 00 may have more behind a dash; ff is none, nor are ids of zeros alone.
_IDS = "-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
_PARENT = re.compile(f"00{_IDS}|(?!00|ff)[0-9a-f]{{2}}{_IDS}(-[!-~]{{0,200}})?")
_STATE = re.compile(r"[ -~]+")


def trace_context(headers: Mapping[str, object]) -> dict[str, str]:
    """Returns the trace context in the headers of a message or request; empty without a valid
    one."""
    parent, state = headers.get(TRACEPARENT), headers.get(TRACESTATE)
    if not isinstance(parent, str) or not _PARENT.fullmatch(parent):
        return {}
    found = {TRACEPARENT: parent}
    if isinstance(state, str) and len(state) <= MAX_TRACESTATE and _STATE.fullmatch(state):
        found[TRACESTATE] = state
    return found


def trace_id(headers: Mapping[str, object]) -> str:
    """Returns the id of the trace, for log lines; empty without a valid one."""
    return trace_context(headers).get(TRACEPARENT, "")[3:35]
