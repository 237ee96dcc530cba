"""Two thousand real feed documents, posted over HTTP: the same bytes reach webhook and AMQP."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pika
import pytest

from tests.support.corpus import FeedDocument, feed_documents
from tests.support.http import Callback
from tests.support.server import WarrenServer

AUTH = ("guest", "guest")
PATIENCE_S = 60


@pytest.fixture(scope="module")
def documents() -> list[FeedDocument]:
    return feed_documents()


@pytest.fixture
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=warren.http_url, auth=AUTH, timeout=PATIENCE_S) as client:
        yield client


@pytest.fixture
def channel(warren: WarrenServer) -> Iterator[pika.adapters.blocking_connection.BlockingChannel]:
    connection = pika.BlockingConnection(pika.URLParameters(warren.amqp_url))
    yield connection.channel()
    connection.close()


@pytest.mark.thorough
def test_every_document_arrives_as_it_was_sent(
    documents: list[FeedDocument],
    http: httpx.Client,
    channel: pika.adapters.blocking_connection.BlockingChannel,
    callback: Callback,
) -> None:
    made = http.put("/endpoint/x/documents", params={"amqp.exchange_type": "topic"})
    assert made.status_code == 201
    subscription = {
        "hub.mode": "subscribe",
        "hub.callback": callback.url,
        "hub.topic": "feed.#",
        "hub.verify": "sync",
    }
    assert http.post("/subscribe/x/documents", data=subscription).status_code == 204
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, "documents", "feed.#")

    for number, document in enumerate(documents):
        answer = http.post(
            "/endpoint/x/documents",
            params={"hub.topic": f"feed.{number}"},
            content=document.body,
            headers={"Content-Type": document.content_type},
        )
        assert answer.status_code == 202, document.path

    expected = [
        (f"feed.{number}", document.content_type, document.body)
        for number, document in enumerate(documents)
    ]
    consumed = []
    for method, properties, body in channel.consume(queue, auto_ack=True):
        assert method is not None
        consumed.append((method.routing_key, properties.content_type, body))
        if len(consumed) == len(documents):
            break
    assert consumed == expected
    delivered = [
        (request.headers["X-AMQP-Routing-Key"], request.headers["Content-Type"], request.body)
        for request in callback.wait(len(documents), PATIENCE_S)
    ]
    assert delivered == expected
