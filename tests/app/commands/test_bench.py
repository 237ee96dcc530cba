"""`warren bench throughput`, of Warren and of RabbitMQ."""

from __future__ import annotations

import json

import pytest

from tests.app.support import warren as run_warren
from tests.support.ports import free_port
from tests.support.rabbitmq import RabbitMQServer
from tests.support.server import WarrenServer

LOADS = (
    ("--size", "0", "--prefetch", "0"),
    ("--persistent", "--confirms", "50", "--size", "1000", "--producers", "2", "--consumers", "2",
     "--queues", "2"),
    ("--keys", "7", "--queues", "2", "--producers", "2", "--consumers", "2", "--confirms", "9"),
)  # fmt: skip


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("broker", ["warren", pytest.param("rabbitmq", marks=pytest.mark.thorough)])
def test_all_that_was_published_was_consumed(
    request: pytest.FixtureRequest, broker: str, load: tuple[str, ...]
) -> None:
    server: WarrenServer | RabbitMQServer = request.getfixturevalue(broker)
    words = ("bench", "throughput", server.amqp_url, "--seconds", "0.1", "--json", *load)
    done = run_warren(*words)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["consumed"] == found["published"] > 0
    assert found["consumed_per_s"] > 0 and found["published_per_s"] > 0


def test_the_queues_are_gone_and_people_get_a_table(warren: WarrenServer) -> None:
    done = run_warren(
        "bench", "throughput", warren.amqp_url, "--seconds", "0.1", "--consumers", "0"
    )
    assert done.stdout.startswith("published  ") and "consumed" not in done.stdout
    log = run_warren("definitions", "export", WARREN_URL=warren.http_url).stdout
    assert '"queues"' in log and "bench-" not in log


def test_refusals(warren: WarrenServer) -> None:
    for url, code, reason in (
        ("http://localhost", 2, "give the broker's URL as amqp://"),
        (warren.amqp_url.replace("%2F", "none"), 4, "530 NOT_ALLOWED"),
        (warren.amqp_url.replace("guest:guest", "guest:wrong"), 4, "403 ACCESS_REFUSED"),
        (f"amqp://127.0.0.1:{free_port()}", 5, "can't be reached"),
        (warren.amqp_url.replace("amqp:", "amqps:"), 5, "can't be reached: [SSL"),
        (f"amqp://127.0.0.1:{warren.http_port}", 5, "does not speak AMQP 0-9-1"),
    ):
        done = run_warren("bench", "throughput", url)
        assert (done.returncode, reason in done.stderr) == (code, True), done
        assert done.stderr.count("\n") == 1
