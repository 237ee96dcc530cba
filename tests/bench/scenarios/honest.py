"""The rows that identical frames flatter: many keys, unique properties, small acks."""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import partial

from pamqp.commands import Basic
from pamqp.common import FieldTable

from ..brokers import Broker
from ..consumer import Subscription
from ..figures import Figures
from ..flow import Exchange, Flow, run
from ..frames import Message, Stream
from ..producer import Load
from ..scenario import Scenario, Settings
from .throughput import PREFETCH, QUEUES, SMALL, one_to_one, row, to_queue

EXCHANGE = "bench-x"
TASKS = 50_000
PLACEHOLDER = "0" * 36
TASK_BODY = b'[[3, 4], {}, {"callbacks": null, "errbacks": null, "chain": null, "chord": null}]'
AHEAD = 2_000


def key_stream(count: int) -> Stream:
    """Publishes of `count` routing keys of one width."""
    messages = (Message(EXCHANGE, f"key.{number:07}", SMALL) for number in range(count))
    return Stream.join([message.published() for message in messages])


def many_keys(settings: Settings, *, count: int, kind: str, binding: str) -> Flow:
    """With few keys each is a binding of its own; with a million, `binding` takes them all."""
    keys = tuple(f"key.{number:07}" for number in range(count)) if not binding else (binding,)
    return Flow(
        QUEUES[:1],
        ((partial(key_stream, count), Load(settings.seconds)),),
        (Subscription(QUEUES[0], Message(EXCHANGE, "key.0000000", SMALL), same_body=False),),
        (Exchange(EXCHANGE, kind, tuple((QUEUES[0], key) for key in keys)),),
    )


def task_message() -> Message:
    """A task as Celery sends it, ids still blank."""
    headers: FieldTable = {
        "lang": "py", "task": "shop.tasks.add", "id": PLACEHOLDER, "root_id": PLACEHOLDER,
        "parent_id": None, "shadow": None, "eta": None, "expires": None, "group": None,
        "group_index": None, "retries": 0, "timelimit": [None, None], "argsrepr": "(3, 4)",
        "kwargsrepr": "{}", "origin": "gen4242@bench", "ignore_result": False,
    }  # fmt: skip
    properties = Basic.Properties(
        content_type="application/json",
        content_encoding="utf-8",
        headers=headers,
        delivery_mode=2,
        priority=0,
        correlation_id=PLACEHOLDER,
        reply_to=str(uuid.uuid4()),
    )
    return Message("", QUEUES[0], TASK_BODY, properties.marshal())


def _tasks() -> Stream:
    blank = task_message().published()
    ids = (str(uuid.uuid4()).encode() for _ in range(TASKS))
    return Stream.join([blank.replace(PLACEHOLDER.encode(), one) for one in ids])


def unique_properties(settings: Settings) -> Flow:
    """Every header frame differs; the queue is transient, so that no disk is measured."""
    return Flow(
        QUEUES[:1],
        ((_tasks, Load(settings.seconds)),),
        (Subscription(QUEUES[0], task_message(), same_body=False),),
    )


def other_channel(settings: Settings) -> Flow:
    flow = one_to_one(settings)
    return replace(flow, consumers=(replace(flow.consumers[0], channel=7),))


def single_acks(settings: Settings) -> Flow:
    return one_to_one(settings, prefetch=PREFETCH, ack_every=1)


def prefetch_1(broker: Broker, settings: Settings) -> Figures:
    """Ten consumers with one message in hand each; the producer stays 2,000 ahead at most."""
    message = to_queue()
    load = Load(settings.seconds, ahead=AHEAD)
    consumers = (Subscription(QUEUES[0], message, prefetch=1, ack_every=1),) * 10
    flow = Flow(QUEUES[:1], ((partial(Stream.repeat, message), load),), consumers)
    return run(broker, flow)


MILLION = 1_000_000

SCENARIOS = (
    row("keys-10", partial(many_keys, count=10, kind="direct", binding="")),
    row("keys-1m-topic", partial(many_keys, count=MILLION, kind="topic", binding="#")),
    row("keys-1m-fanout", partial(many_keys, count=MILLION, kind="fanout", binding="any")),
    row("unique-properties", unique_properties, 200_000),
    row("other-channel", other_channel),
    row("single-acks", single_acks),
    Scenario("prefetch-1x10", prefetch_1),
)
