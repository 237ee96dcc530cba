"""The lists of the web UI in Chromium: shown, filtered and scrolled, with very many objects."""

from __future__ import annotations

import json
from typing import Any

from tests.browser.browsers import Browser, Page, missing

from ..brokers import Broker
from ..client import Address, BenchError, Client, names
from ..figures import Figures, Goal
from ..http_client import HttpConnection, request
from ..scenario import Scenario, Settings
from .cold_queues import declare
from .metrics import QUEUE_COUNT

SUBSCRIPTIONS, AT_ONCE = 10_000, 500
ROWS = 50
SHOWN_MS, FROZEN_MS = 500.0, 200.0
PREPARE = """(async () => {
  window.tasks = [];
  window.frame = () => new Promise(requestAnimationFrame);
  window.rows = () => [...document.querySelectorAll('main tbody tr')];
  window.keep = (entries) => window.tasks.push(...entries.map((one) => one.duration));
  window.observer = new PerformanceObserver((list) => keep(list.getEntries()));
  window.observer.observe({type: 'longtask'});
})()"""
SHOW = """(async () => {
  document.querySelector('main').replaceChildren();
  const start = performance.now();
  location.hash = %s;
  while (rows().length < %d) await frame();
  return performance.now() - start;
})()"""
FILTER = """(async (text) => {
  const field = document.querySelector('[data-search]');
  const start = performance.now();
  for (let at = 1; at <= text.length; at += 1) {
    field.value = text.slice(0, at);
    field.dispatchEvent(new Event('input', {bubbles: true}));
    await frame();
  }
  const fits = (row) => row.innerText.includes(text);
  while (!rows().length || !rows().every(fits)) await frame();
  return performance.now() - start;
})(%s)"""
SCROLL = """(async () => {
  const gaps = [];
  for (let at = 0; at < 120; at += 1) {
    const start = performance.now();
    scrollTo(0, (at * 40) % (document.documentElement.scrollHeight - innerHeight));
    await frame();
    gaps.push(performance.now() - start);
  }
  return gaps.sort((a, b) => a - b)[Math.floor(gaps.length * 0.99)];
})()"""
LONGEST = """(async () => {
  await frame(); // so that the task before has ended
  keep(observer.takeRecords());
  return Math.max(0, ...window.tasks.splice(0));
})()"""


def lists(broker: Broker, _: Settings) -> Figures:
    """p50 is the time until the list of queues is shown, the rest is in the note."""
    assert broker.http is not None
    if reason := missing("chromium"):
        raise BenchError(reason)
    client = Client(broker.address)
    count = declare(client, names("bench-lists-", QUEUE_COUNT), b"")
    client.close()
    _subscribe(broker.http)
    with Browser("chromium") as browser:
        page = browser.new_page()
        _sign_in(page, broker.http)
        found = {
            "queues": _measured(page, "/queues", names("bench-lists-", 1, count - 5)[0]),
            "subscriptions": _measured(page, "/subscriptions", f"hook/{SUBSCRIPTIONS - 5}"),
        }
    line = Figures(p50_ms=found["queues"]["shown"])
    for (name, times), number in zip(found.items(), (count, SUBSCRIPTIONS), strict=True):
        said = ", ".join(f"{what} {ms:.0f} ms" for what, ms in times.items())
        line.remark(f"{number:,} {name}: {said}")
        line.goals.append(Goal(f"{name} shown <= {SHOWN_MS:.0f} ms", times["shown"] <= SHOWN_MS))
        line.goals.append(Goal(f"frozen <= {FROZEN_MS:.0f} ms", times["frozen"] <= FROZEN_MS))
    return line


def _subscribe(http: Address) -> None:
    connection = HttpConnection(http)
    for first in range(0, SUBSCRIPTIONS, AT_ONCE):
        entries = [_subscription(number) for number in range(first, first + AT_ONCE)]
        body = json.dumps({"subscriptions": entries}).encode()
        connection.ask(request(http, "POST", "/subscriptions", body, "application/json"), 202)
    connection.close()


def _subscription(number: int) -> dict[str, Any]:
    return {
        "vhost": "/", "resource_type": "exchange", "resource_name": "amq.topic",
        "topic": f"key.{number}", "callback": f"http://127.0.0.1:9/hook/{number}",
        "status": "inactive",
    }  # fmt: skip


def _sign_in(page: Page, http: Address) -> None:
    page.open(f"http://localhost:{http.port}/")
    page.wait("document.querySelector('.sign-in input[name=name]')")
    page.type("input[name=name]", http.user)
    page.type("input[name=password]", http.password, enter=True)
    page.wait("document.querySelector('main .tile')")
    page.run(PREPARE)


def _measured(page: Page, route: str, name: str) -> dict[str, float]:
    """Returns milliseconds; `frozen` is the longest time without an answer to the user."""
    times = {
        "shown": page.run(SHOW % (json.dumps(f"#{route}"), ROWS)),
        "filtered": page.run(FILTER % json.dumps(name)),
    }
    page.run(SHOW % (json.dumps(f"#{route}?page=2"), ROWS))
    times["a frame of scrolling"] = page.run(SCROLL)
    times["frozen"] = page.run(LONGEST)
    return times


SCENARIOS = (Scenario("ui-lists", lists, fresh=True, http=True),)
