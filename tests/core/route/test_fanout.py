from __future__ import annotations

from tests.core.route.support import FakeQueue, exchange


def test_everything_bound_matches_any_key() -> None:
    fanout, queues = exchange("fanout"), [FakeQueue("q"), FakeQueue("r")]
    for queue in queues:
        fanout.bind(queue, "a", {})
        fanout.bind(queue, "b", {})
    assert list(fanout.match("other", {"a": 1})) == queues
    assert (fanout.uses_key, fanout.uses_headers) == (False, False)


def test_a_queue_stays_until_its_last_binding_goes() -> None:
    fanout, queue = exchange("fanout"), FakeQueue("q")
    fanout.bind(queue, "a", {})
    fanout.bind(queue, "b", {})
    fanout.unbind(queue, "a", {})
    assert list(fanout.match("", None)) == [queue]
    fanout.unbind(queue, "b", {})
    assert list(fanout.match("", None)) == []
