"""Dramatiq: its delay queues and dead letter queues stand on TTL and dead lettering."""

from __future__ import annotations

import queue as stdlib_queue
from collections.abc import Iterator
from typing import Any

import dramatiq
import pytest
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.middleware import CurrentMessage, Middleware, Retries
from pika.adapters.blocking_connection import BlockingChannel

from .support import WAIT_S, Broker, fresh, get, wait_ready

DELAY_MS = 200
Done = stdlib_queue.Queue[tuple[str, int]]


@pytest.fixture
def tasks(broker: Broker) -> Iterator[RabbitmqBroker]:
    middleware: list[Middleware] = [Retries(min_backoff=10, max_backoff=20), CurrentMessage()]
    tasks = RabbitmqBroker(url=broker.url, confirm_delivery=True, middleware=middleware)
    yield tasks
    tasks.close()


@pytest.fixture
def done() -> Done:
    """What the actors put down when they are through."""
    return stdlib_queue.Queue()


class Work:
    """An actor on a queue of its own, and a worker that runs it between entry and exit."""

    def __init__(self, tasks: RabbitmqBroker, done: Done, **options: Any) -> None:
        self.queue = fresh("dramatiq")
        self.attempts: dict[str, int] = {}
        self._done = done
        make = dramatiq.actor(broker=tasks, queue_name=self.queue, actor_name=self.queue, **options)
        self.actor = make(self._run)
        self._worker = dramatiq.Worker(tasks, worker_timeout=50, worker_threads=2)

    def _run(self, text: str, failures: int = 0) -> None:
        self.attempts[text] = attempt = self.attempts.get(text, 0) + 1
        if attempt <= failures:
            raise RuntimeError(f"failure {attempt} of {failures}")
        self._done.put((text, attempt))

    def __enter__(self) -> Work:
        self._worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.stop()


def test_fifty_tasks_run_once_each(tasks: RabbitmqBroker, done: Done) -> None:
    with Work(tasks, done) as work:
        for number in range(50):
            work.actor.send(str(number))
        results = sorted(done.get(timeout=WAIT_S) for _ in range(50))
    assert results == sorted((str(number), 1) for number in range(50))


def test_a_delayed_task_lets_others_pass(tasks: RabbitmqBroker, done: Done) -> None:
    with Work(tasks, done) as work:
        work.actor.send_with_options(args=("later",), delay=DELAY_MS)
        work.actor.send("now")
        assert [done.get(timeout=WAIT_S) for _ in range(2)] == [("now", 1), ("later", 1)]


def test_a_failing_task_is_retried_through_the_delay_queue(
    tasks: RabbitmqBroker, done: Done
) -> None:
    with Work(tasks, done, max_retries=3) as work:
        work.actor.send("works in the end", 2)
        assert done.get(timeout=WAIT_S) == ("works in the end", 3)


def test_a_hopeless_task_is_a_dead_letter(
    tasks: RabbitmqBroker, done: Done, channel: BlockingChannel
) -> None:
    with Work(tasks, done, max_retries=1) as work:
        work.actor.send("hopeless", 99)
        dead = get(channel, f"{work.queue}.XQ")
        assert work.attempts == {"hopeless": 2}
        wait_ready(channel, work.queue, 0)
    assert dead.method.routing_key == f"{work.queue}.XQ"
    (death,) = dead.properties.headers["x-death"]
    assert (death["reason"], death["queue"], death["count"]) == ("rejected", work.queue, 1)
    message = dramatiq.Message.decode(dead.body)
    assert (message.actor_name, message.args) == (work.queue, ("hopeless", 99))
    assert message.options["retries"] == 1


def test_tasks_of_a_stopped_worker_stay(tasks: RabbitmqBroker, done: Done) -> None:
    """A delayed task is held unacknowledged by the worker; its end gives it back."""
    work = Work(tasks, done)
    with work:
        work.actor.send_with_options(args=("tomorrow",), delay=3_600_000)
        work.actor.send("today")
        assert done.get(timeout=WAIT_S) == ("today", 1)
    assert tasks.get_queue_message_counts(work.queue) == (0, 1, 0)
