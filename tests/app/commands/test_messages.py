"""`warren publish`, `tail`, `sub`, `deliveries` and `dead`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import httpx
import pytest

from tests.support.http import Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer, warren_command

from .conftest import Command

WAIT_S = 60.0


@pytest.fixture(scope="module")
def warren() -> Iterator[WarrenServer]:
    """One whose deliveries fail for good at once."""
    with WarrenServer(env={"WARREN_MAX_ATTEMPTS": "1"}) as server:
        yield server


@pytest.fixture
def log(warren: WarrenServer) -> None:
    """A new stream of that name."""
    url = f"{warren.http_url}/endpoint/q/log"
    httpx.delete(url, auth=("guest", "guest"))
    httpx.put(f"{url}?arg.x-queue-type=stream", auth=("guest", "guest")).raise_for_status()


def tailed(command: Command, count: int) -> list[dict[str, object]]:
    words = ("tail", "q", "log", "--cursor", "first", "--count", str(count), "--json")
    return [json.loads(line) for line in command(*words).splitlines()]


@pytest.mark.usefixtures("log")
def test_publishes_with_properties_and_shows(command: Command) -> None:
    more = ("--header", "n=€1", "--property", "correlation_id=7", "--content-type", "text/x-note")
    assert command("publish", "q", "log", "one\x1b[2J", *more) == "published\n"
    assert command("publish", "q", "log", "-", given="two\nlines\n") == "published\n"
    login = ("--password-file", "-")
    assert command("publish", "q", "log", "-", *login, given="guest\nthree\n") == "published\n"
    first, second, third = tailed(command, 3)
    assert (first["body"], first["content_type"]) == ("one\x1b[2J", "text/x-note")
    assert first["headers"] == {"n": "€1"} and second["body"] == "two\nlines\n"
    assert third["body"] == "three\n"
    shown = command("tail", "q", "log", "--cursor", "first", "--count", "1").split()
    assert shown[1:] == ["-", "one", "[2J"]


@pytest.mark.usefixtures("log")
def test_each_line_is_a_message_until_the_server_refuses(command: Command) -> None:
    lines = ("publish", "q", "log", "-", "--lines")
    assert command(*lines, given="1\n2\r\n\n4") == "4 messages are published\n"
    assert [one["body"] for one in tailed(command, 4)] == ["1", "2", "", "4"]
    too_large = "1\n" + 17 * 1024 * 1024 * "x" + "\n3\n"
    assert "1 message is published, then: " in command(*lines, given=too_large, code=3)
    assert "413" in command(*lines, given=too_large[2:], code=4)
    assert "404" in command("publish", "q", "none", "-", "--lines", given="1\n", code=4)
    assert "--lines" in command("publish", "q", "log", "text", "--lines", code=2)
    for header, wrong in (("a b=c", "is no name"), ("a=b\nc", "has a control character")):
        assert wrong in command("publish", "q", "log", "text", "--header", header, code=2)
    assert "no queue" in command("publish", "x", "amq.direct", "1", "--mandatory", code=4)


def test_a_reader_that_has_enough_is_no_error(warren: WarrenServer) -> None:
    """`true` has ended long before the command prints."""
    script = f"{warren_command()[0]} vhost list --url {warren.http_url} | true; echo $PIPESTATUS"
    found = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=WAIT_S, check=True
    )
    assert (found.stdout, found.stderr) == ("0\n", "")


def test_a_subscription_with_its_deliveries_and_dead_letters(
    warren: WarrenServer, command: Command, callback: Callback
) -> None:
    httpx.put(f"{warren.http_url}/endpoint/x/news", auth=("guest", "guest")).raise_for_status()
    options = ("--option", "in_flight=2", "--max-tps", "9", "--lease", "600", "--key", "eu")
    assert "is subscribed" in command("sub", "add", "x", "news", callback.url, *options)
    found = json.loads(command("sub", "list", "--callback", callback.url, "--json"))
    assert (found["topic"], found["lease_seconds"], found["max_tps"]) == ("eu", 600, 9)
    command("publish", "x", "news", "first", "--key", "eu")
    wait_until(lambda: "delivered" in command("deliveries"), WAIT_S, "the attempt is stored")
    assert command("sub", "list", "--failing") == "no subscriptions\n"

    callback.script(500)
    command("publish", "x", "news", "second", "--key", "eu")
    wait_until(lambda: "no dead" not in command("dead", "list"), WAIT_S, "a dead letter")
    [letter] = [json.loads(command("dead", "list", "--json"))]
    assert json.loads(command("dead", "show", letter["id"], "--json"))["payload"] == "second"
    assert "give IDs, a filter, or --all" in command("dead", "replay", code=2)
    matching = ("--subscription", found["id"])
    assert command("dead", "delete", *matching, "--dry-run") == "1 dead letter matches\n"
    assert command("dead", "delete", "other", "--dry-run") == "0 dead letters match\n"

    command("sub", "pause", found["id"])
    assert "the subscription" in command("dead", "replay", letter["id"], code=3)
    command("sub", "resume", found["id"])
    assert command("dead", "replay", *matching) == "1 dead letter is replayed\n"
    assert [one.body for one in callback.wait(3)] == [b"first", b"second", b"second"]
    assert command("dead", "delete", "--all") == "0 dead letters are deleted\n"
    assert "lasts until" in command("sub", "renew", found["id"], "900")
    assert command("sub", "remove", found["id"]) == f"subscription {found['id']} has ended\n"
