"""The Celery application of test_celery.py: the tests make it, and so do their workers."""

# kombu says that it is typed, but its functions are not.
# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

import itertools
import os
import threading

from celery import Celery, Task
from celery.exceptions import Reject
from kombu import Queue

WORK, DEAD, FRAGILE, RANKED = "celery-work", "celery-dead", "celery-fragile", "celery-ranked"
DEAD_LETTERS = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DEAD}
_turns = itertools.count()


def add(x: int, y: int) -> int:
    return x + y


def turn() -> int:
    """Which of its calls in this process it is."""
    return next(_turns)


def fail() -> None:
    raise ValueError("is at home")


def flaky(self: Task) -> int:
    """Succeeds in its third attempt; each retry is a message with an ETA."""
    if self.request.retries < 2:
        raise self.retry()
    return int(self.request.retries)


def requeue_once(self: Task) -> bool:
    """Goes back to the queue once and tells what the second delivery says of itself."""
    if not self.request.delivery_info["redelivered"]:
        raise Reject("once more", requeue=True)
    return True


def give_up() -> None:
    raise Reject("never", requeue=False)


def hang_unless_redelivered(self: Task) -> str:
    """Hangs in the first worker, which the test kills; the second one answers."""
    if not self.request.delivery_info["redelivered"]:
        threading.Event().wait()
    return str(self.request.hostname)


def make(broker_url: str) -> Celery:
    """An application whose tasks go by the names of their functions."""
    app = Celery(__name__, broker=broker_url, backend="rpc://", set_as_current=False)
    app.conf.update(
        broker_connection_retry_on_startup=True,
        # One task in hand: what is reserved beyond that was allowed by a raised prefetch.
        worker_prefetch_multiplier=1,
        task_track_started=True,
        task_default_queue=WORK,
        task_queues=[Queue(WORK, queue_arguments=DEAD_LETTERS), Queue(RANKED, max_priority=10)],
    )
    for plain in (add, turn, fail):
        app.task(plain, name=plain.__name__)
    app.task(flaky, name="flaky", bind=True, max_retries=3, default_retry_delay=0.05)
    app.task(give_up, name="give_up", acks_late=True)
    for bound in (requeue_once, hang_unless_redelivered):
        app.task(bound, name=bound.__name__, bind=True, acks_late=True)
    return app


if "CELERY_BROKER" in os.environ:
    app = make(os.environ["CELERY_BROKER"])
