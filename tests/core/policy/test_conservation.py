"""Policies that come and go on a durable queue, against a plain list: nothing gets lost.

The queue has a dead-letter exchange, so whatever a policy asks to go is in the dead-letter queue
with its reason, and all else is in the queue, in order, also after restarts, crashes and paging.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.core.life import Life
from tests.support.amqp import names

from .support import clear, put

DEFINITIONS: tuple[dict[str, Any], ...] = (
    {"max_length": 2},
    {"max_length": 4},
    {"max_length_bytes": 25},
    {"message_ttl": 50},
    {"message_ttl": 400},
    {"max_length": 3, "message_ttl": 200},
)
OF_USERS: tuple[dict[str, Any], ...] = (
    *DEFINITIONS,
    {"max_length": 2, "overflow": "reject-publish"},
    {"max_length_bytes": 30, "overflow": "reject-publish"},
    {"delivery_limit": 100},
)
BODY_BYTES = 10


@dataclass
class Held:
    """A message in the queue; `order` and body are its number."""

    number: int
    came_ms: int


class Conservation(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="warren-policies-"))
        self.life = Life(self.directory, segment_bytes=2_000)
        self.ready: list[Held] = []
        self.unacked: dict[int, Held] = {}
        self.dead: list[str] = []
        self.count = 0
        self.in_force: dict[bool, dict[str, Any]] = {False: {}, True: {}}

    @initialize()
    def begin(self) -> None:
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        self.life.declare("mail", arguments=arguments)
        self.life.declare("dead")
        self.life.confirm()

    def teardown(self) -> None:
        self.life.abandon()
        rmtree(self.directory)

    # -- what the policies ask for, counted by hand

    def limit(self, key: str) -> int | None:
        found = [policy[key] for policy in self.in_force.values() if key in policy]
        return min(found, default=None)

    @property
    def rejects(self) -> bool:
        return "overflow" in self.in_force[False]

    def is_over(self, count: int) -> bool:
        most, most_bytes = self.limit("max_length"), self.limit("max_length_bytes")
        return (most is not None and count > most) or (
            most_bytes is not None and count * BODY_BYTES > most_bytes
        )

    def follow(self) -> None:
        """What goes by now goes."""
        ttl_ms, now_ms = self.limit("message_ttl"), self.life.clock.now_ms()
        if ttl_ms is not None:
            self.go([held for held in self.ready if held.came_ms + ttl_ms <= now_ms], "expired")
        while not self.rejects and self.is_over(len(self.ready)):
            self.go(self.ready[:1], "maxlen")

    def go(self, gone: list[Held], reason: str) -> None:
        self.ready = [held for held in self.ready if held not in gone]
        self.dead += [f"{held.number} {reason}" for held in gone]

    # -- what is done

    @rule(how_many=st.integers(1, 4))
    def publish(self, how_many: int) -> None:
        for _ in range(how_many):
            self.count += 1
            body = b"%d" % self.count
            answer = self.life.publish(body.rjust(BODY_BYTES), "mail")
            accepted = not (self.rejects and self.is_over(len(self.ready) + 1))
            assert names(answer) == ["Basic.Ack" if accepted else "Basic.Nack"]
            if accepted:
                self.ready.append(Held(self.count, self.life.clock.now_ms()))
                self.follow()

    @precondition(lambda self: self.ready)
    @rule()
    def get(self) -> None:
        reply = self.life.get("mail", ack=False)
        assert reply is not None
        held = self.ready.pop(0)
        assert int(reply.body) == held.number
        self.unacked[reply["delivery_tag"]] = held

    @precondition(lambda self: self.unacked)
    @rule(data=st.data(), requeue=st.sampled_from([None, False, True]))
    def settle(self, data: st.DataObject, requeue: bool | None) -> None:
        tag = data.draw(st.sampled_from(sorted(self.unacked)))
        held = self.unacked.pop(tag)
        if requeue is None:
            self.life.client.send("Basic.Ack", delivery_tag=tag)
        else:
            self.life.client.send("Basic.Reject", delivery_tag=tag, requeue=requeue)
        if requeue is False:
            self.dead.append(f"{held.number} rejected")
        elif requeue:
            self.put_back([held])

    def put_back(self, returned: list[Held]) -> None:
        self.ready = sorted(self.ready + returned, key=lambda held: held.number)
        self.follow()

    @rule(definition=st.sampled_from(OF_USERS), priority=st.integers(-1, 1))
    def set_policy(self, definition: dict[str, Any], priority: int) -> None:
        put(self.life.broker, "p", "^mail$", priority=priority, **definition)
        self.changed(False, definition)

    @rule(definition=st.sampled_from(DEFINITIONS))
    def set_operator_policy(self, definition: dict[str, Any]) -> None:
        put(self.life.broker, "o", "mail", apply_to="queues", operator=True, **definition)
        self.changed(True, definition)
        clear(self.life.broker, "not there", operator=True)

    @rule(operator=st.booleans())
    def clear_policy(self, operator: bool) -> None:
        clear(self.life.broker, "o" if operator else "p", operator=operator)
        self.changed(operator, {})

    def changed(self, operator: bool, definition: dict[str, Any]) -> None:
        self.in_force[operator] = definition
        self.life.turns()
        self.follow()

    @rule(by_ms=st.sampled_from([1, 30, 100, 350]))
    def advance(self, by_ms: int) -> None:
        self.life.turns(1, each_ms=by_ms)
        self.follow()

    @rule()
    def page_out(self) -> None:
        self.life.write()
        self.follow()
        self.life.page_out("mail")

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        self.life.write()
        self.follow()
        if clean:
            self.life.restart()
        else:
            self.life.crash()
        self.life.turns()
        self.life.confirm()
        returned = list(self.unacked.values())
        self.unacked.clear()
        self.put_back(returned)

    # -- what has to be so

    @invariant()
    def all_is_where_it_belongs(self) -> None:
        self.life.turns()
        assert self.life.queue("mail").ready_count == len(self.ready)
        assert sorted(self.taken_from_dead()) == sorted(self.dead)
        self.dead.clear()

    def taken_from_dead(self) -> list[str]:
        found = []
        while (reply := self.life.get("dead")) is not None:
            death: Any = reply.headers["x-death"][0]
            found.append(f"{int(reply.body)} {death['reason']}")
        return found


TestConservation = Conservation.TestCase
TestConservation.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
