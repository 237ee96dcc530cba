"""`warren deliveries`: the log of attempts to deliver messages to callbacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import click

from .client import PAGE_SIZE, ApiClient
from .options import examples, with_server
from .printer import Printer

_COLUMNS = ("at", "outcome", "status", "latency_ms", "number", "webhook_id", "callback", "response")
_OUTCOMES = ("delivered", "retried", "dead", "gone")


@click.command(
    help="List delivery attempts and what the callbacks answered. The newest are first.",
    epilog=examples(
        "warren deliveries --outcome retried --limit 20",
        "warren deliveries --subscription ID --json | jq .response_body",
    ),
)
@click.option("--subscription", metavar="ID", help="Only those of this subscription.")
@click.option("--message", "webhook_id", metavar="WEBHOOK_ID", help="Only those of this message.")
@click.option("--outcome", type=click.Choice(_OUTCOMES))
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N")
@with_server
def deliveries(
    api: ApiClient, out: Printer, subscription: str | None, webhook_id: str | None,
    outcome: str | None, limit: int,
) -> None:  # fmt: skip
    query = {"subscription": subscription, "webhook_id": webhook_id, "outcome": outcome}
    out.rows(islice(_attempts(api, query, limit), limit), _COLUMNS, "deliveries")


def _attempts(api: ApiClient, query: Mapping[str, Any], limit: int) -> Iterator[Any]:
    """Yields attempts, page by page; the last page may have more than `limit` needs."""
    before: int | None = None
    while True:
        asked = {**query, "before": before, "limit": min(limit, PAGE_SIZE)}
        page = api.get("/api/hub/attempts", asked)
        yield from page["attempts"]
        before = page["next_before"]
        if before is None:
            return
