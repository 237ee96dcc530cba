"""`warren connection`: who is connected, and how an operator ends that."""

from __future__ import annotations

import json

import pika
import pytest
from pika.exceptions import ConnectionClosedByBroker

from tests.support.server import WarrenServer

from .conftest import Command


def connected(warren: WarrenServer) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(warren.amqp_url))


def reason(connection: pika.BlockingConnection) -> str:
    """What the server tells the client at the end of the connection."""
    with pytest.raises(ConnectionClosedByBroker) as closed:
        connection.process_data_events(20)
    return str(closed.value.reply_text)


def test_connections_are_listed_and_closed(warren: WarrenServer, command: Command) -> None:
    one = connected(warren)
    listing = ("connection", "list", "--json", "--of", "guest", "--vhost", "/")
    found = json.loads(command(*listing))
    assert (found["user"], found["vhost"], found["state"]) == ("guest", "/", "running")
    assert command("connection", "list", "--of", "ada") == "no connections\n"
    close = ("connection", "close", found["name"])
    assert command(*close, "--reason", "maintenance").endswith("is closed\n")
    assert reason(one) == "CONNECTION_FORCED - maintenance"
    assert "404" in command(*close, code=4)
    assert command(*close, "--idempotent").endswith("does not exist\n")
    other = connected(warren)
    command("connection", "close", "--of", "guest")
    assert "CONNECTION_FORCED" in reason(other)
    assert "either NAME or --of" in command("connection", "close", code=2)
    assert "printable" in command(*close, "--reason", "ü", code=2)
