"""The results of pipeline jobs, as lines of a chart (docs/pipeline.md)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from starlette.responses import Response

from ....core.auth.authorization import at_topics
from ....hub.outputs.sources import RESULTS_EXCHANGE
from ....hub.results.row import HOUR_S, SHAPES
from ...documents import pipeline
from ...problems import Problem
from ...requests.properties import parse_query
from ...responses.times import rfc3339
from .call import Call, answer
from .filters import Filters
from .required_tags import ANYBODY
from .route import Operation, Routes

QUERY: Final = ("job", "vhost", "from", "until", "by", "step", "top")
DAY_S: Final = 24 * HOUR_S
STEPS: Final = {"hour": HOUR_S, "day": DAY_S}
RANGE_S: Final = 7 * DAY_S
HOURS_S: Final = 14 * DAY_S
"""A longer time comes by the day, unless hours are asked for."""
TOP, MAX_TOP = 6, 50


async def find(call: Call) -> Response:
    """Returns what a job has found in each hour or day, for the largest groups.

    `job` is rollup, delivery-health or trending; `vhost` is `/` if absent; `from` and `until` are
    RFC 3339, the last week if absent. `by` is the key that names groups (exchange, routing_key;
    subscription, topic; term), `step` hour or day, `top` how many groups (6, at most 50).

    The user needs permission to read the exchange `hub.pipeline`, with the job as the key.
    """
    filters = Filters(parse_query(call.request.scope["query_string"]), QUERY)
    job = filters.word("job", tuple(SHAPES))
    if job is None:
        raise Problem(400, f"'job' is missing, it has to be one of {', '.join(SHAPES)}")
    shape = SHAPES[job]
    by = filters.word("by", shape.keys) or shape.keys[0]
    vhost = filters.text("vhost") or "/"
    _require_read(call, vhost, job)
    until_s = _time(filters, "until", call.broker.clock.wall_s())
    start_s = _time(filters, "from", until_s - RANGE_S)
    step = filters.word("step", tuple(STEPS)) or ("hour" if until_s - start_s <= HOURS_S else "day")
    found = await call.context.hub.results.find(
        job, vhost, int(start_s) // STEPS[step] * STEPS[step], int(until_s) + 1,
        shape.keys.index(by), STEPS[step], filters.number("top", 1, MAX_TOP) or TOP,
    )  # fmt: skip
    return answer(
        {
            "job": job,
            "vhost": vhost,
            "by": by,
            "step": step,
            "from": rfc3339(start_s),
            "until": rfc3339(until_s),
            "times": found.times,
            "groups": [{"name": one.name, "values": one.values} for one in found.groups],
        }
    )


def _require_read(call: Call, vhost: str, job: str) -> None:
    """Raises `ChannelError` 403."""
    call.own_vhost(vhost)
    call.user.require(vhost, "read", "exchange", RESULTS_EXCHANGE)
    topics = at_topics(call.user, vhost, RESULTS_EXCHANGE, "topic", {})
    if topics is not None:
        topics.require("read", job)


def _time(filters: Filters, name: str, default_s: float) -> float:
    """Returns a time as seconds since 1970; raises `Problem` 400."""
    text = filters.text(name)
    if text is None:
        return default_s
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise Problem(
            400, f"'{name}' is '{text[:80]}', it has to be a time such as 2026-01-31T12:00:00Z"
        ) from None


ROUTES: Routes = {
    "/hub/pipeline/results": {
        "GET": Operation(find, ANYBODY, {200: pipeline.PipelineResults}, query=QUERY)
    }
}
