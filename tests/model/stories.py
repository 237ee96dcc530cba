"""Stories that told Warren from the model once, as `pair.told` prints them."""

from __future__ import annotations

from .operations import Call, Operation, Policy, Publish, Publishes, Restart, Seat

ONE: Seat = (0, 1)
KEPT = {"delivery_mode": 2}
LAST_TO_Q2 = {
    "x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q2",
}  # fmt: skip

STORIES: dict[str, tuple[Operation, ...]] = {
    "what is over at a start dies by its deadlines": (
        Call(ONE, "Channel.Open"),
        Call(ONE, "Queue.Declare", {"queue": "q0", "durable": True}),
        Call(
            ONE, "Queue.Declare",
            {"queue": "q1", "durable": True,
             "arguments": {"x-message-ttl": 37, "x-dead-letter-exchange": "",
                           "x-dead-letter-routing-key": "q0"}},
        ),
        Call(ONE, "Basic.Consume", {"queue": "q1", "consumer_tag": "c1"}),
        Publishes(ONE, (Publish(b"26", "", "q1", KEPT),)),
        Publishes(ONE, (Publish(b"30" + 30 * b"-", "", "q1", {**KEPT, "expiration": "19"}),)),
        Restart(clean=False),
        Policy("p0", "^q0$", {"max-length": 1}),
        Call(ONE, "Channel.Open"),
        Call(ONE, "Basic.Get", {"queue": "q0"}),
    ),
    "dead letters of two queues come in any order": (
        Call(ONE, "Channel.Open"),
        Call(ONE, "Queue.Declare", {"queue": "q0", "arguments": LAST_TO_Q2}),
        Call(ONE, "Queue.Declare", {"queue": "q1", "arguments": LAST_TO_Q2}),
        Call(ONE, "Queue.Bind", {"queue": "q1", "exchange": "amq.fanout"}),
        Call(ONE, "Queue.Bind", {"queue": "q0", "exchange": "amq.fanout"}),
        Call(ONE, "Queue.Declare", {"queue": "q2", "arguments": {"x-max-length-bytes": 60}}),
        Publishes(ONE, (Publish(40 * b"-", "", "q0"), Publish(b"1", "", "q1"))),
        Publishes(ONE, (Publish(b"2", "amq.fanout"),)),
        Publishes(ONE, (Publish(30 * b"-", "", "q2"),)),
    ),
    "of dead letters that come together the highest goes first": (
        Call(ONE, "Channel.Open"),
        Call(ONE, "Queue.Declare", {"queue": "q0", "arguments": {"x-max-priority": 1}}),
        Call(
            ONE, "Queue.Declare",
            {"queue": "q2", "arguments": {"x-dead-letter-exchange": "amq.fanout"}},
        ),
        Call(ONE, "Queue.Bind", {"queue": "q0", "exchange": "amq.fanout"}),
        Call(ONE, "Queue.Bind", {"queue": "q2", "exchange": "amq.fanout"}),
        Call(ONE, "Basic.Consume", {"queue": "q2", "consumer_tag": "c1"}),
        Call(ONE, "Basic.Consume", {"queue": "q0", "consumer_tag": "c2"}),
        Publishes(ONE, (Publish(b"8", "", "q2"), Publish(b"16", "", "q2", {"priority": 9}))),
        Call(ONE, "Basic.Nack", {"delivery_tag": 2, "multiple": True}),
    ),
    "after a clean stop older ones of a lower priority are new": (
        Call(ONE, "Channel.Open"),
        Call(
            ONE, "Queue.Declare",
            {"queue": "q2", "durable": True, "arguments": {"x-queue-type": "quorum"}},
        ),
        Publishes(ONE, (Publish(b"16", "", "q2", KEPT),)),
        Publishes(ONE, (Publish(b"38", "", "q2", {**KEPT, "priority": 1}),)),
        Call(ONE, "Basic.Get", {"queue": "q2", "no_ack": True}),
        Restart(clean=True),
        Call(ONE, "Channel.Open"),
        Call(ONE, "Basic.Get", {"queue": "q2"}),
    ),
}  # fmt: skip
