"""The metrics of the hub: deliveries, subscriptions, feeds, tunnels and pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...hub.delivery.breaker import BreakerState
from ...hub.feeds.health import Health
from ...hub.runs.run import RunState
from ...hub.subscriptions.delivery_state import Phase
from .family import Family, Kind, Samples, counter, gauge, histogram
from .totals import Scrape


def _attempts(scrape: Scrape) -> Samples:
    counted = scrape.server.hub.dispatcher.metrics.attempts.items()
    return [((outcome.value, status), count) for (outcome, status), count in counted]


def _archive_lags(scrape: Scrape) -> Samples:
    return [
        ((found.stream.vhost, found.stream.source, found.stream.name, found.name), found.lag)
        for found in scrape.hub.archives
    ]


def _runs(scrape: Scrape) -> Samples:
    counts: dict[tuple[str, str], int] = {}
    for run in scrape.hub.runs or ():
        is_lost = scrape.server.hub.runs.is_lost(run)
        key = run.job, "lost" if is_lost else run.report.state.value
        counts[key] = counts.get(key, 0) + 1
    return counts.items()


def _run_lags(scrape: Scrape) -> Samples:
    """Returns the largest lag of each job."""
    lags: dict[tuple[str, ...], int] = {}
    for run in scrape.hub.runs or ():
        if run.report.state is RunState.RUNNING and run.report.lag is not None:
            lags[run.job,] = max(run.report.lag, lags.get((run.job,), 0))
    return lags.items()


def _run_rows(scrape: Scrape) -> Samples:
    """Returns the rows of each job's runs together."""
    rows: dict[tuple[str, ...], int] = {}
    for run in scrape.hub.runs or ():
        rows[run.job,] = rows.get((run.job,), 0) + run.report.rows
    return rows.items()


FAMILIES: Final[Sequence[Family[Scrape]]] = (
    Family(
        "warren_delivery_attempts_total", Kind.COUNTER,
        "Attempts to deliver, by outcome and class of the status (none: no answer)",
        _attempts, ("outcome", "status"),
    ),
    histogram(
        "warren_delivery_attempt_seconds", "From a request to its answer or failure",
        lambda scrape: scrape.server.hub.dispatcher.metrics.attempt_s,
    ),
    histogram(
        "warren_delivery_seconds",
        "From the arrival of a message in its queue to its delivery, retries included",
        lambda scrape: scrape.server.hub.dispatcher.metrics.delivery_s,
    ),
    Family(
        "warren_deliveries", Kind.GAUGE, "Messages that the hub has taken from their queues",
        lambda scrape: [
            (("waiting",), scrape.server.hub.dispatcher.waiting_count),
            (("in_flight",), scrape.server.hub.dispatcher.in_flight_count),
        ],
        ("state",),
    ),
    gauge(
        "warren_retries_waiting", "Messages that wait for another attempt, in retry queues",
        lambda scrape: scrape.broker.retries,
    ),
    gauge(
        "warren_dead_letters", "Messages that have failed for good and were not replayed",
        lambda scrape: scrape.broker.dead_letters,
    ),
    Family(
        "warren_subscriptions", Kind.GAUGE, "Subscriptions by phase",
        lambda scrape: [
            ((phase.name.lower(),), scrape.hub.subscriptions[phase])
            for phase in Phase if phase is not Phase.OVER
        ],
        ("phase",),
    ),
    Family(
        "warren_breakers", Kind.GAUGE, "Subscriptions by the state of their breaker",
        lambda scrape: [((state.value,), scrape.hub.breakers[state]) for state in BreakerState],
        ("state",),
    ),
    counter(
        "warren_breakers_opened_total", "How often a callback failed so often that it gets a rest",
        lambda scrape: scrape.server.hub.dispatcher.metrics.breakers_opened,
    ),
    gauge(
        "warren_live_readers", "Connections that read at /stream",
        lambda scrape: scrape.server.hub.live.count,
    ),
    Family(
        "warren_feeds", Kind.GAUGE, "Registered feeds by health",
        lambda scrape: [((health.value,), scrape.hub.feeds[health]) for health in Health],
        ("state",),
    ),
    Family(
        "warren_feed_polls_total", Kind.COUNTER, "Polls of feeds by outcome",
        lambda scrape: [
            ((one,), scrape.server.hub.feeds.outcomes.get(one, 0))
            for one in ("changed", "unchanged", "failed")
        ],
        ("outcome",),
    ),
    counter(
        "warren_feed_entries_total", "New and changed entries of feeds",
        lambda scrape: scrape.server.hub.feeds.outcomes.get("entries", 0),
    ),
    gauge("warren_tunnels", "Enrolled labels of tunnels", lambda scrape: scrape.hub.tunnels),
    gauge(
        "warren_tunnel_polls", "Polls of tunnels' applications that wait for a request",
        lambda scrape: scrape.hub.waiting_polls,
    ),
    Family(
        "warren_tunnel_requests", Kind.GAUGE, "Requests to tunnels without a reply yet",
        lambda scrape: [
            (("queued",), scrape.hub.queued_requests),
            (("in_flight",), scrape.hub.requests_in_flight),
        ],
        ("state",),
    ),
    gauge(
        "warren_database_up", "Whether the hub's database could be read",
        lambda scrape: int(scrape.hub.runs is not None),
    ),
    Family(
        "warren_pipeline_runs", Kind.GAUGE, "Runs of pipeline jobs by state",
        _runs, ("pipeline", "state"),
    ),
    Family(
        "warren_pipeline_lag_messages", Kind.GAUGE,
        "Messages that a job has not processed, of its run that is farthest behind",
        _run_lags, ("pipeline",),
    ),
    Family(
        "warren_pipeline_rows", Kind.GAUGE,
        "Messages that the runs of a job have processed, of those that the server remembers",
        _run_rows, ("pipeline",),
    ),
    Family(
        "warren_archive_lag_messages", Kind.GAUGE, "Messages of a stream that are not archived yet",
        _archive_lags, ("vhost", "source", "stream", "archive"),
    ),
)  # fmt: skip
