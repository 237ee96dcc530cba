"""Fan-out to many durable queues: what is written for them, and what is read again."""

from __future__ import annotations

from functools import partial

from ..brokers import Broker
from ..client import BenchError
from ..consumer import Subscription
from ..disk import FileBytes, directory_bytes
from ..figures import Figures, Goal
from ..flow import Exchange, Flow, Standing, drain, fill
from ..frames import PERSISTENT, Message, Stream
from ..producer import Load
from ..scenario import Scenario, Settings
from ..spent import Spent
from .throughput import KIB

COPIES = 10
MESSAGES = 10_000
WINDOW = 2_000
LIMIT_S = 60.0
AT_MOST = 1.5
EXCHANGE = "bench-x"
QUEUES = tuple(f"bench-copy-{number}" for number in range(COPIES))


def _flow() -> Flow:
    message = Message(EXCHANGE, "bench.key", KIB, PERSISTENT)
    exchange = Exchange(EXCHANGE, "fanout", tuple((queue, "") for queue in QUEUES))
    load = Load(LIMIT_S, limit=MESSAGES, window=WINDOW)
    return Flow(
        QUEUES,
        ((partial(Stream.repeat, message), load),),
        tuple(Subscription(queue, message) for queue in QUEUES),
        (exchange,),
        copies=COPIES,
        durable=True,
    )


def stored_once(broker: Broker, settings: Settings) -> Figures:
    """In: confirmed publishes; out: deliveries of all queues after a restart, from the disk.

    What a broker reads to start, its own program too, stands beside what it reads to deliver.
    What it maps into memory can't be counted.
    """
    flow = _flow()
    published = MESSAGES * len(flow.consumers[0].message.published())
    with Standing(broker, flow):
        written, spent = FileBytes(broker), Spent(broker)
        filled = fill(broker, flow)
        if filled.published != MESSAGES:
            raise BenchError(f"{filled.published} of {MESSAGES} were confirmed in {LIMIT_S:.0f} s")
        line = Figures(filled.in_rate, None, spent.cpu_us(MESSAGES), spent.peak_mb())
        line.written = written.written(filled.sent[0].confirm_bytes) / published
        line.disk_mb = directory_bytes(broker.data) / 1e6
        broker.restart(False)
        at_start_mb = broker.meter.files().read / 1e6
        read = FileBytes(broker)
        line.out_rate = drain(broker, flow, MESSAGES).out_rate
        read_again = read.read(0) / published
    line.note = f"{COPIES} queues, {MESSAGES:,} of 1 KiB; read again {read_again:.2f} per byte in, "
    line.note += f"after {at_start_mb:.0f} MB read to start"
    line.goals.append(Goal(f"{AT_MOST} written at most", line.written <= AT_MOST))
    line.goals.append(Goal(f"{AT_MOST} read at most", read_again <= AT_MOST))
    return line


SCENARIOS = (Scenario("fanout-1-10-durable", stored_once, fresh=True),)
