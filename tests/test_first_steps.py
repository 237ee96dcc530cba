"""The examples of docs/first-steps.md do what it says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from tests.support.ports import accepts
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from tests.support.terminals import TIMEOUT_S, Terminals, shows

DOCUMENT = (Path(__file__).parents[1] / "docs" / "first-steps.md").read_text()


def consumers(server: WarrenServer, queue: str) -> int:
    with pika.BlockingConnection(pika.URLParameters(server.amqp_url)) as connection:
        count: int = connection.channel().queue_declare(queue, durable=True).method.consumer_count
    return count


@pytest.fixture
def terminals(tmp_path: Path, warren: WarrenServer) -> Iterator[Terminals]:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    terminals = Terminals(DOCUMENT, tmp_path, warren)
    try:
        yield terminals
    finally:
        terminals.close()


def test_examples(terminals: Terminals, warren: WarrenServer) -> None:
    example = terminals.example
    evan = terminals.start(example("callback.py"))
    wait_until(lambda: accepts(terminals.callback_port), TIMEOUT_S, "the callback's start")
    terminals.run(example("exchange_type=direct"))
    anders = terminals.start(example("anders.py"))
    wait_until(lambda: consumers(warren, "anders") == 1, TIMEOUT_S, "Anders' consumer")

    terminals.run(example("'is at work'"))
    shows(evan, "/evan?hub.topic=tony text/plain b'is at work'")
    shows(anders, "tony text/plain b'is at work'")

    terminals.run(example("tony.py"))
    shows(evan, "/evan?hub.topic=tony text/plain b'is at home'")
    shows(anders, "tony text/plain b'is at home'")

    terminals.run(example("article.xml"))
    shows(evan, "/news?hub.topic=eu.fr application/atom+xml b'<entry xmlns=")

    terminals.run(example("wash the dishes"))
    shows(evan, "b'wash the dishes'")
    shows(evan, "b'feed the rabbits'")

    terminals.run(example("hub.mode=unsubscribe"))
    terminals.run(example("openapi.json"))
    assert "paths" in json.loads((terminals.directory / "openapi.json").read_text())
    assert len(terminals.shown) == 3
