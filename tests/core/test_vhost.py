"""Exchanges, queues and bindings of a virtual host, without a protocol."""

from __future__ import annotations

import pytest

from tests.support.amqp import make_broker
from warrenmq.core.route.exchange import Exchange
from warrenmq.core.vhost import VirtualHost


@pytest.fixture
def vhost() -> VirtualHost:
    return make_broker().vhosts["/"]


def auto_delete_exchange(vhost: VirtualHost, name: str) -> Exchange:
    return vhost.declare_exchange(
        name, "fanout", durable=False, auto_delete=True, internal=False, arguments={}
    )


def test_auto_delete_in_a_ring(vhost: VirtualHost) -> None:
    first, second = auto_delete_exchange(vhost, "a"), auto_delete_exchange(vhost, "b")
    vhost.bindings.add(first, second, "", {})
    vhost.bindings.add(second, first, "", {})
    vhost.delete_exchange("a")
    assert not {"a", "b"} & vhost.exchanges.keys()


def test_ids_are_never_used_again(vhost: VirtualHost) -> None:
    first = vhost.declare_queue("q").id
    vhost.delete_queue("q")
    assert vhost.declare_queue("q").id > first


def test_a_default_route_ends_with_its_queue(vhost: VirtualHost) -> None:
    vhost.declare_queue("q")
    route = vhost.route(None, ("q",), None, watched=True)
    assert not route.dead
    vhost.declare_queue("other")
    assert not route.dead, "other queues are nothing to it"
    vhost.delete_queue("q")
    assert route.dead
