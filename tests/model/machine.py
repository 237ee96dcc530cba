"""What hypothesis does to a broker and to the model side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from .broker import Model, Unsure
from .choices import (
    A_PUBLISH,
    BAD_ARGUMENTS,
    BAD_PROPERTIES,
    BEGINNINGS,
    COMMON,
    CRITERIA,
    DELAYS,
    KEYS,
    MORE,
    OWN_BEGINNINGS,
    OWN_EXCHANGES,
    PATTERNS,
    POLICIES,
    PREDECLARED,
    QUEUE_ARGUMENTS,
    QUEUES,
    SEATS,
    SOME_POLICIES,
    SOME_PUBLISHES,
    SPECIAL,
    TYPES,
    WEIGHTS,
    Draw,
    chosen,
    weighted,
)
from .operations import Advance, Call, Drop, Operation, Policy, Publish, Publishes, Restart, Seat
from .pair import Pair, Story, fails, makes_sense, shortest, told
from .queues import Channel, Queue

SELDOM = st.sampled_from((False,) * 6 + (True,))
PICK = st.integers(0, 99)
CONNECTIONS = (0, 1)
LONG_RUN = int(os.environ.get("WARREN_MODEL_CASES", "0"))


class Machine(RuleBasedStateMachine):
    """Each step is one of the methods named in `weights`, with what it draws."""

    make: Callable[[], Pair]
    more: ClassVar[dict[str, int]] = {}
    beginnings: ClassVar = BEGINNINGS
    failed: ClassVar[Story] = []

    def __init__(self) -> None:
        super().__init__()
        self.pair = type(self).make()
        self.weights = COMMON
        self.numbers = 0
        self.tags = 0
        self.broken = False
        self.over = False

    @property
    def model(self) -> Model:
        return self.pair.model

    # -- how an operation is done

    def do(self, operation: Operation) -> None:
        if self.over:
            return
        try:
            self.pair.do(operation)
        except Unsure:
            self.over = True
        except BaseException:
            self.broken = True
            type(self).failed = self.pair.story
            raise

    def call(self, seat: Seat, method: str, **fields: Any) -> None:
        self.opened(seat)
        self.do(Call(seat, method, fields))

    def opened(self, seat: Seat) -> Channel:
        if seat not in self.model.channels:
            self.do(Call(seat, "Channel.Open"))
        return self.model.channels.get(seat) or Channel(seat)

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        """Some queues to begin with."""
        self.weights = {**COMMON, **data.draw(st.sampled_from(MORE)), **self.more}
        for name, arguments in data.draw(st.sampled_from(self.beginnings)).items():
            durable = data.draw(st.booleans()) or "x-queue-type" in arguments
            given = self.fit(self.some_arguments(data.draw) if data.draw(SELDOM) else arguments)
            self.call(SEATS[0], "Queue.Declare", queue=name, durable=durable, arguments=given)
            self.call(SEATS[0], "Queue.Bind", queue=name, exchange="amq.fanout")
            self.call(SEATS[0], "Queue.Bind", queue=name, exchange="amq.topic", routing_key="a.#")

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        if self.over:
            return
        action = data.draw(weighted(self.weights))
        getattr(self, action)(data.draw(chosen(SEATS)), data.draw)

    # -- what differs among brokers

    def span(self, ms: int) -> int:
        """A time as this broker can be tested with."""
        return ms

    def fit(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: self.span(value) if name in ("x-message-ttl", "x-expires") else value
            for name, value in arguments.items()
        }

    def some_arguments(self, draw: Draw) -> dict[str, Any]:
        """Of a queue."""
        found: dict[str, Any] = draw(QUEUE_ARGUMENTS)
        return found

    def may_go_together(self) -> bool:
        """Whether the order of what a batch leads to is certain."""
        return True

    # -- names

    def usable(self, seat: Seat, draw: Draw) -> str:
        """A queue that this connection may use, if there is one."""
        names = [name for name, queue in self.model.queues.items() if _may(seat, queue)]
        return names[draw(PICK) % len(names)] if names and not draw(SELDOM) else QUEUES[0]

    def declare_queue(self, seat: Seat, draw: Draw) -> None:
        name, same = draw(chosen(QUEUES)), draw(st.integers(0, 3))
        fields = {
            "durable": draw(st.booleans()),
            "exclusive": draw(SELDOM),
            "auto_delete": draw(SELDOM),
            "arguments": self.fit(self.some_arguments(draw)),
        }
        found = self.model.queues.get(name)
        if found is not None and same:
            fields = {
                "durable": found.durable, "exclusive": found.exclusive,
                "auto_delete": found.auto_delete, "arguments": found.arguments,
            }  # fmt: skip
        self.call(seat, "Queue.Declare", queue=name, **fields)

    def declare_badly(self, seat: Seat, draw: Draw) -> None:
        name = draw(chosen((*QUEUES, "amq.mine")))
        if name not in self.model.queues:
            arguments = dict(draw(st.sampled_from(BAD_ARGUMENTS)))
            self.call(seat, "Queue.Declare", queue=name, arguments=arguments)

    def declare_unnamed(self, seat: Seat, draw: Draw) -> None:
        arguments = self.fit(self.some_arguments(draw))
        self.call(seat, "Queue.Declare", queue="", exclusive=True, arguments=arguments)

    def look(self, seat: Seat, draw: Draw) -> None:
        self.call(seat, "Queue.Declare", queue=draw(chosen((*QUEUES, ""))), passive=True)

    def delete_queue(self, seat: Seat, draw: Draw) -> None:
        self.call(
            seat, "Queue.Delete", queue=draw(chosen(QUEUES)),
            if_unused=draw(st.booleans()), if_empty=draw(st.booleans()),
        )  # fmt: skip

    def purge(self, seat: Seat, draw: Draw) -> None:
        self.call(seat, "Queue.Purge", queue=self.usable(seat, draw))

    def declare_exchange(self, seat: Seat, draw: Draw) -> None:
        name, same = draw(chosen(OWN_EXCHANGES)), draw(st.integers(0, 3))
        other = draw(chosen((None, None, "e0", "e1", "amq.fanout", "missing")))
        fields = {
            "exchange_type": draw(chosen(TYPES)),
            "durable": draw(st.booleans()),
            "auto_delete": draw(SELDOM),
            "internal": draw(SELDOM),
            "arguments": {} if other is None else {"alternate-exchange": other},
        }
        found = self.model.topology.exchanges.get(name)
        if found is not None and same:
            fields = {
                "exchange_type": found.type_name, "durable": found.durable,
                "auto_delete": found.auto_delete, "internal": found.internal,
                "arguments": found.arguments,
            }  # fmt: skip
        self.call(seat, "Exchange.Declare", exchange=name, **fields)

    def look_exchange(self, seat: Seat, draw: Draw) -> None:
        name = draw(chosen((*OWN_EXCHANGES, *PREDECLARED, "")))
        self.call(seat, "Exchange.Declare", exchange=name, exchange_type="direct", passive=True)

    def delete_exchange(self, seat: Seat, draw: Draw) -> None:
        name = draw(chosen((*OWN_EXCHANGES, "amq.topic")))
        self.call(seat, "Exchange.Delete", exchange=name, if_unused=draw(st.booleans()))

    def exchange(self, draw: Draw) -> str:
        """One that is there, mostly."""
        names = sorted(set(self.model.topology.exchanges) - set(SPECIAL))
        names = names if not draw(SELDOM) else list(OWN_EXCHANGES)
        return str(draw(chosen(tuple(names))))

    def binding(self, source: str, draw: Draw) -> dict[str, Any]:
        key = draw(chosen(PATTERNS))
        exchange = self.model.topology.exchanges.get(source)
        if exchange is not None and exchange.type_name == "headers":
            wrong = draw(SELDOM) and draw(SELDOM)
            criteria = {"x-match": "never"} if wrong else draw(st.sampled_from(CRITERIA))
            return {"routing_key": key, "arguments": dict(criteria)}
        return {"routing_key": key}

    def bind_queue(self, seat: Seat, draw: Draw) -> None:
        source = self.exchange(draw)
        fields = {"queue": self.usable(seat, draw), "exchange": source}
        method = "Queue.Unbind" if draw(SELDOM) else "Queue.Bind"
        self.call(seat, method, **fields, **self.binding(source, draw))

    def bind_exchange(self, seat: Seat, draw: Draw) -> None:
        source = self.exchange(draw)
        if source in SPECIAL:
            return
        fields = {"destination": self.exchange(draw), "source": source}
        method = "Exchange.Unbind" if draw(SELDOM) else "Exchange.Bind"
        self.call(seat, method, **fields, **self.binding(source, draw))

    def special(self, seat: Seat, draw: Draw) -> None:
        """Exchanges of the types that choose, wait or remember: declared, bound, published to."""
        name = draw(chosen(tuple(sorted(SPECIAL))))
        exchange = self.model.topology.exchanges.get(name)
        if exchange is None:
            kind, arguments = draw(st.sampled_from(SPECIAL[name]))
            self.call(
                seat, "Exchange.Declare", exchange=name, exchange_type=kind, durable=True,
                arguments=arguments,
            )  # fmt: skip
        elif draw(st.integers(0, 2)) == 0:
            self.bind_special(seat, name, draw)
        elif draw(SELDOM) and draw(SELDOM):
            self.call(seat, "Exchange.Delete", exchange=name)
        else:
            self.publish_special(seat, name, draw)

    def bind_special(self, seat: Seat, name: str, draw: Draw) -> None:
        kind = self.model.topology.exchanges[name].type_name
        key = draw(chosen(KEYS if kind != "x-consistent-hash" else WEIGHTS))
        arguments: dict[str, Any] = {}
        if name == "keep":
            known = self.model.memories[name].numbers.known if name in self.model.memories else {}
            arguments = draw(
                st.sampled_from(
                    ({}, {"x-head": 2}, {"x-head": -1}, {"x-tail": 2}, {"x-tail": -1},
                     {"x-from": 0}, *({"x-from": number} for number in known.values()))
                )
            )  # fmt: skip
        method = "Queue.Unbind" if draw(SELDOM) else "Queue.Bind"
        self.call(
            seat, method, queue=self.usable(seat, draw), exchange=name, routing_key=key,
            arguments=arguments,
        )  # fmt: skip

    def publish_special(self, seat: Seat, name: str, draw: Draw) -> None:
        if self.opened(seat).transaction is not None:
            return
        fields = draw(A_PUBLISH)
        headers = {
            key: value
            for key, value in fields["properties"].get("headers", {}).items()
            if key not in ("CC", "BCC")
        }
        if name == "late":
            headers["x-delay"] = draw(chosen(DELAYS))
        if name == "past" and draw(SELDOM):
            headers["x-recent-history-no-store"] = True
        properties = {"delivery_mode": 2} | ({"headers": headers} if headers else {})
        self.do(Publishes(seat, (Publish(self.body(1), name, fields["key"], properties),)))

    # -- messages

    def publish(self, seat: Seat, draw: Draw) -> None:
        messages = draw(SOME_PUBLISHES)
        times = draw(chosen((1, 1, 1, 4)))
        self.opened(seat)
        many = times * len(messages) > 1
        ready = [self.made(fields, many) for _ in range(times) for fields in messages]
        if self.may_go_together():
            self.do(Publishes(seat, tuple(ready)))
        else:
            for message in ready:
                self.do(Publishes(seat, (message,)))

    def made(self, fields: dict[str, Any], many: bool) -> Publish:
        """Of those in a batch none fails, see `publish_badly`, and none expires at once: how far
        the others are by then is open."""
        fields = {**fields, "properties": dict(fields["properties"])}
        ttl = fields["properties"].get("expiration")
        if ttl is not None:
            ttl = "19" if many and ttl == "0" else ttl
            fields["properties"]["expiration"] = str(self.span(int(ttl)))
        exchange = self.model.topology.exchanges.get(fields["exchange"])
        if exchange is None or exchange.internal:
            fields["exchange"] = ""
        if not self.model.dialect.immediate:
            fields["immediate"] = False
        return Publish(self.body(fields.pop("size")), **fields)

    def body(self, size: int) -> bytes:
        """No two are the same."""
        self.numbers += 1
        return b"%d" % self.numbers + b"-" * size

    def publish_badly(self, seat: Seat, draw: Draw) -> None:
        exchange = draw(chosen((*OWN_EXCHANGES, "missing", "amq.direct")))
        properties = draw(st.sampled_from(BAD_PROPERTIES))
        self.opened(seat)
        message = Publish(self.body(0), exchange, "a", properties, draw(st.booleans()))
        self.do(Publishes(seat, (message,)))

    def get(self, seat: Seat, draw: Draw) -> None:
        name = draw(chosen(QUEUES)) if draw(SELDOM) else self.usable(seat, draw)
        for _ in range(draw(st.integers(1, 3))):
            self.call(seat, "Basic.Get", queue=name, no_ack=draw(st.booleans()))

    def consume(self, seat: Seat, draw: Draw) -> None:
        self.tags += 1
        tag = f"c{self.tags}"
        used = self.opened(seat).consumers
        if used and draw(SELDOM) and draw(SELDOM):
            tag = min(used)
        priority = draw(chosen((0, 0, 0, 1, -1)))
        self.call(
            seat, "Basic.Consume", queue=self.usable(seat, draw), consumer_tag=tag,
            no_ack=draw(SELDOM), exclusive=draw(SELDOM),
            arguments={"x-priority": priority} if priority else {},
        )  # fmt: skip

    def cancel(self, seat: Seat, draw: Draw) -> None:
        tags = [*sorted(self.opened(seat).consumers), "none"]
        self.call(seat, "Basic.Cancel", consumer_tag=tags[draw(PICK) % len(tags)])

    def qos(self, seat: Seat, draw: Draw) -> None:
        count = draw(st.integers(0, 3))
        self.call(seat, "Basic.Qos", prefetch_count=count, global_=draw(SELDOM))

    def settle(self, seat: Seat, draw: Draw) -> None:
        """On another channel when there is nothing to settle on this one."""
        seats = [seat, *(other for other in self.model.channels if self.tags_of(other))]
        seat = next((other for other in seats if self.tags_of(other)), seat)
        tags, multiple = self.tags_of(seat), draw(SELDOM)
        tag = tags[draw(PICK) % len(tags)] if tags else 0
        if draw(SELDOM) and draw(SELDOM):
            tag = draw(chosen((0, 99)))
        if not tags and not multiple and tag != 99:
            return
        how = draw(chosen(("ack", "ack", "nack", "requeue", "reject", "return")))
        if how in ("reject", "return"):
            self.call(seat, "Basic.Reject", delivery_tag=tag, requeue=how == "return")
        elif how == "ack":
            self.call(seat, "Basic.Ack", delivery_tag=tag, multiple=multiple)
        else:
            self.call(
                seat, "Basic.Nack", delivery_tag=tag, multiple=multiple, requeue=how == "requeue"
            )

    def tags_of(self, seat: Seat) -> list[int]:
        channel = self.model.channels.get(seat)
        return [entry.tag for entry in channel.outstanding] if channel else []

    def recover(self, seat: Seat, draw: Draw) -> None:
        self.call(seat, "Basic.Recover", requeue=True)

    # -- channels and connections

    def choose_mode(self, seat: Seat, draw: Draw) -> None:
        select = draw(chosen(("Confirm.Select", "Tx.Select")))
        end = draw(chosen(("Tx.Commit", "Tx.Commit", "Tx.Rollback")))
        transacting = self.opened(seat).transaction is not None
        other = draw(SELDOM) and draw(SELDOM)
        self.call(seat, end if transacting != other else select)

    def close_channel(self, seat: Seat, draw: Draw) -> None:
        if seat in self.model.channels:
            self.do(Call(seat, "Channel.Close", {"reply_code": 200}))

    def drop(self, seat: Seat, draw: Draw) -> None:
        self.do(Drop(seat[0]))

    # -- policies

    def set_policy(self, seat: Seat, draw: Draw) -> None:
        policy = draw(SOME_POLICIES)
        times = ("message-ttl", "expires")
        definition = {
            key: self.span(value) if key in times else value
            for key, value in policy.definition.items()
        }
        self.do(replace(policy, definition=definition))

    def clear_policy(self, seat: Seat, draw: Draw) -> None:
        self.do(Policy(draw(chosen(tuple(sorted(POLICIES))))))

    # -- the end

    def teardown(self) -> None:
        try:
            if not (self.broken or self.over):
                self.drain()
        finally:
            self.pair.close()

    def drain(self) -> None:
        """Takes all that is left, after everything came back."""
        for connection in CONNECTIONS:
            self.do(Drop(connection))
        for name in sorted(self.model.queues):
            while not self.over and name in self.model.queues and self.model.queues[name].ready:
                self.call(SEATS[0], "Basic.Get", queue=name, no_ack=True)


def _may(seat: Seat, queue: Queue) -> bool:
    return queue.owner in (None, seat[0])


class Timed(Machine):
    """With a clock that the test moves, and a broker that is stopped and killed."""

    more: ClassVar[dict[str, int]] = {"time_passes": 8, "restart": 2}
    beginnings = BEGINNINGS + OWN_BEGINNINGS

    def time_passes(self, seat: Seat, draw: Draw) -> None:
        self.do(Advance(draw(chosen((16, 32, 48, 112, 704)))))

    def restart(self, seat: Seat, draw: Draw) -> None:
        self.do(Restart(draw(st.booleans())))


class Special(Timed):
    """More of the exchanges that choose, wait or remember."""

    beginnings = BEGINNINGS[:1]
    more = Timed.more | {
        "special": 80,
        "set_policy": 0,
        "publish": 6,
        "time_passes": 16,
        "restart": 4,
    }

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        super().begin(data)
        for name, sorts in sorted(SPECIAL.items()):
            kind, arguments = data.draw(st.sampled_from(sorts))
            self.call(
                SEATS[0], "Exchange.Declare", exchange=name, exchange_type=kind, durable=True,
                arguments=arguments,
            )  # fmt: skip
            for queue in data.draw(st.lists(chosen(QUEUES[:3]), unique=True)):
                key = "2" if kind == "x-consistent-hash" else data.draw(chosen(KEYS))
                self.call(SEATS[0], "Queue.Bind", queue=queue, exchange=name, routing_key=key)

    def some_arguments(self, draw: Draw) -> dict[str, Any]:
        """Plain queues, in which a message can be seen."""
        return {}


def run(kind: type[Machine], make: Callable[[], Pair], cases: int, steps: int) -> None:
    """The same cases every time, or in a long run as many others as WARREN_MODEL_CASES says.

    Raises `AssertionError` with the shortest story that tells the broker from the model.
    """
    machine: type[Machine] = type(kind.__name__, (kind,), {"make": staticmethod(make)})
    chosen = settings(
        max_examples=LONG_RUN or cases,
        stateful_step_count=steps,
        derandomize=not LONG_RUN,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(machine, settings=chosen)
    except (AssertionError, BaseExceptionGroup):
        if machine.failed:
            tell(machine.failed, make)
        raise


def tell(story: Story, make: Callable[[], Pair]) -> None:
    """Fails with the shortest form of a story, or with all of one that fails now and then."""
    if not fails(story, make):
        raise AssertionError(f"once in a while, after\n{told(story)}")
    story = shortest(story, make)
    pair = make()
    try:
        for operation in story:
            if makes_sense(operation, pair.model):
                pair.do(operation)
    except AssertionError as error:
        raise AssertionError(f"{error}\nafter\n{told(story)}") from None
    finally:
        pair.close()
