"""Celery with real worker processes: results over rpc://, retries, ETA, late acks, control."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.events.receiver import EventReceiver
from pika.adapters.blocking_connection import BlockingChannel

from ..support.process import kill, terminate, wait_until
from .celery_app import DEAD, FRAGILE, RANKED, WORK, make
from .support import WAIT_S, Broker, get

ROOT = Path(__file__).parents[2]
START_TIMEOUT_S = 30.0
FAR_AWAY_S = 3600
WORKER = "tony@warren"


@contextmanager
def worker(app: Celery, name: str, queue: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker process that answers pings; it ends with the block."""
    command = [
        sys.executable, "-m", "celery", "-A", "tests.clients.celery_app", "worker",
        "--pool=solo", "--loglevel=INFO", f"--hostname={name}", f"--queues={queue}",
    ]  # fmt: skip
    env = {**os.environ, "CELERY_BROKER": app.conf.broker_url}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=env, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )

    def answers_or_gone() -> bool:
        pong = app.control.ping(destination=[name], timeout=0.5, limit=1)
        return bool(pong) or process.poll() is not None

    try:
        wait_until(answers_or_gone, START_TIMEOUT_S, f"the start of {name}")
        assert process.poll() is None, log.read_text()
        yield process
    finally:
        if process.poll() is None:
            terminate(process, WAIT_S)


@pytest.fixture(scope="module")
def app(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Celery]:
    """An application with one worker that takes from the queue of most tests."""
    with make(broker.url) as app:
        log = tmp_path_factory.mktemp("celery") / "worker.log"
        with worker(app, WORKER, WORK, log):
            app.tasks["add"].delay(1, 2).get(timeout=WAIT_S)  # the consumer of results begins
            yield app
        app.backend.result_consumer.stop()
        app.pool.force_close_all()


def test_results_come_back(app: Celery) -> None:
    assert app.tasks["add"].delay(2, 3).get(timeout=WAIT_S) == 5


def test_errors_come_back_too(app: Celery) -> None:
    with pytest.raises(ValueError, match="is at home"):
        app.tasks["fail"].delay().get(timeout=WAIT_S)


def test_a_retried_task_succeeds_in_its_third_attempt(app: Celery) -> None:
    assert app.tasks["flaky"].delay().get(timeout=WAIT_S) == 2


def test_a_countdown_lets_others_pass(app: Celery) -> None:
    order: list[str] = []
    later = app.tasks["add"].apply_async((1, 1), countdown=0.5)
    now = app.tasks["add"].delay(2, 2)
    for name, result in (("now", now), ("later", later)):
        result.then(lambda _, name=name: order.append(name))
    assert (now.get(timeout=WAIT_S), later.get(timeout=WAIT_S)) == (4, 2)
    assert order == ["now", "later"]


def test_a_requeued_task_is_redelivered(app: Celery) -> None:
    assert app.tasks["requeue_once"].delay().get(timeout=WAIT_S) is True


def test_a_rejected_task_is_a_dead_letter(app: Celery, channel: BlockingChannel) -> None:
    channel.queue_declare(DEAD, auto_delete=True)
    result = app.tasks["give_up"].delay()
    dead = get(channel, DEAD)
    assert dead.properties.correlation_id == result.id
    (death,) = dead.properties.headers["x-death"]
    assert (death["reason"], death["queue"], death["count"]) == ("rejected", WORK, 1)
    channel.queue_delete(DEAD)


def test_remote_control(app: Celery) -> None:
    assert app.control.ping(timeout=WAIT_S, limit=1) == [{WORKER: {"ok": "pong"}}]
    inspect = app.control.inspect([WORKER], timeout=WAIT_S, limit=1)
    assert {"add", "flaky", "give_up"} <= set(inspect.registered()[WORKER])
    (queue,) = inspect.active_queues()[WORKER]
    assert (queue["name"], queue["durable"], queue["routing_key"]) == (WORK, True, WORK)


class Watcher(EventReceiver):  # type: ignore[misc]
    """Sends a task as soon as it listens, and stops when the task is done."""

    def __init__(self, app: Celery, connection: Any) -> None:
        self.seen: list[str] = []
        super().__init__(connection, handlers={"*": self.watch}, app=app)

    def on_consume_ready(self, *_: object, **__: object) -> None:
        self.app.tasks["add"].delay(1, 2)

    def watch(self, event: dict[str, object]) -> None:
        if str(event["type"]).startswith("task-"):
            self.seen.append(str(event["type"]))
        self.should_stop = event["type"] == "task-succeeded"


def test_events_of_the_worker(app: Celery) -> None:
    """Events are messages through a topic exchange to a queue with a TTL that expires unused."""
    app.control.enable_events([WORKER], reply=True, timeout=WAIT_S, limit=1)
    with app.connection_for_read() as connection:
        watcher = Watcher(app, connection)
        watcher.capture(timeout=WAIT_S)
    assert watcher.seen == ["task-received", "task-started", "task-succeeded"]


def test_the_task_of_a_killed_worker_goes_to_another(app: Celery, tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    with worker(app, "evan@warren", FRAGILE, log) as doomed:
        result = app.tasks["hang_unless_redelivered"].apply_async(queue=FRAGILE)
        received = f"[{result.id}] received"
        wait_until(lambda: received in log.read_text(), WAIT_S, "the start of the task")
        kill(doomed)
    app.control.add_consumer(FRAGILE, destination=[WORKER], reply=False)
    assert result.get(timeout=WAIT_S) == WORKER


def test_tasks_with_a_priority_go_first(app: Celery) -> None:
    """All wait before the worker begins with their queue."""
    priorities = [1, 9, None, 5, 9]
    results = [
        app.tasks["turn"].apply_async(queue=RANKED, priority=priority) for priority in priorities
    ]
    app.control.add_consumer(RANKED, destination=[WORKER], reply=False)
    turns = [result.get(timeout=WAIT_S) for result in results]
    assert sorted(range(5), key=turns.__getitem__) == [1, 4, 3, 0, 2]
    app.control.cancel_consumer(RANKED, destination=[WORKER], reply=False)


def test_tasks_for_tomorrow_do_not_block_those_of_today(app: Celery) -> None:
    """Celery raises its prefetch for each ETA while it consumes; a broker has to follow."""
    tomorrow = [app.tasks["add"].apply_async((1, 1), countdown=FAR_AWAY_S) for _ in range(5)]
    assert app.tasks["add"].delay(2, 3).get(timeout=WAIT_S) == 5
    for result in tomorrow:
        assert not result.ready()
        result.forget()
    scheduled = app.control.inspect([WORKER], timeout=WAIT_S, limit=1).scheduled()[WORKER]
    assert {one["request"]["id"] for one in scheduled} == {result.id for result in tomorrow}
