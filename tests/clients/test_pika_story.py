"""The first example of the README, over AMQP: who follows Tony reads what Tony is doing."""

from __future__ import annotations

from .conftest import Connect
from .support import Inbox, fresh, get_bodies


def test_evan_and_anders_follow_tony(connect: Connect) -> None:
    tony, evan, anders = (connect().channel() for _ in range(3))
    queues = {follower: fresh("follower") for follower in (evan, anders)}
    for follower, queue in queues.items():
        follower.queue_declare(queue, exclusive=True)
        follower.queue_bind(queue, "amq.direct", "tony")
    inboxes = [Inbox(follower, queue) for follower, queue in queues.items()]

    tony.basic_publish("amq.direct", "tony", "is at work")
    tony.basic_publish("amq.direct", "evan", "is asleep")
    tony.basic_publish("amq.direct", "tony", "is at home")

    for inbox in inboxes:
        assert inbox.wait_bodies(2) == [b"is at work", b"is at home"]
        assert [delivery.method.routing_key for delivery in inbox.deliveries] == ["tony"] * 2
        assert {delivery.method.exchange for delivery in inbox.deliveries} == {"amq.direct"}
        assert not any(delivery.method.redelivered for delivery in inbox.deliveries)


def test_who_unfollows_gets_no_more_and_who_follows_late_nothing_old(connect: Connect) -> None:
    tony = connect().channel()
    tony.confirm_delivery()
    evan, anders = fresh("evan"), fresh("anders")
    for queue in (evan, anders):
        tony.queue_declare(queue, exclusive=True)

    tony.queue_bind(evan, "amq.topic", "tony.status")
    tony.basic_publish("amq.topic", "tony.status", "is at work")
    tony.queue_bind(anders, "amq.topic", "tony.*")
    tony.basic_publish("amq.topic", "tony.status", "is at lunch")
    tony.queue_unbind(evan, "amq.topic", "tony.status")
    tony.basic_publish("amq.topic", "tony.status", "is at home")

    assert get_bodies(tony, evan, 2) == [b"is at work", b"is at lunch"]
    assert get_bodies(tony, anders, 2) == [b"is at lunch", b"is at home"]
