"""The command line tools of librabbitmq (Debian's amqp-tools): a client written in C."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from pika.adapters.blocking_connection import BlockingChannel

from .support import WAIT_S, Broker, fresh, pump, ready_count

TOOLS = ["declare-queue", "publish", "get", "consume", "delete-queue"]

pytestmark = pytest.mark.skipif(
    any(shutil.which(f"amqp-{tool}") is None for tool in TOOLS),
    reason="amqp-tools are not installed",
)


class Tools:
    """Runs `amqp-<tool>` against the broker and gives what it prints."""

    def __init__(self, broker: Broker) -> None:
        self._url = broker.url

    def command(self, tool: str, *arguments: str) -> list[str]:
        return [f"amqp-{tool}", f"--url={self._url}", *arguments]

    def run(self, tool: str, *arguments: str, text: bytes | None = None) -> bytes:
        done = subprocess.run(
            self.command(tool, *arguments), input=text, capture_output=True, timeout=WAIT_S
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout

    def fail(self, tool: str, *arguments: str) -> str:
        done = subprocess.run(self.command(tool, *arguments), capture_output=True, timeout=WAIT_S)
        assert done.returncode != 0
        return done.stderr.decode()


@pytest.fixture
def tools(broker: Broker) -> Tools:
    return Tools(broker)


def test_declare_publish_get_delete(tools: Tools) -> None:
    queue = fresh("queue")
    assert tools.run("declare-queue", "-q", queue) == f"{queue}\n".encode()
    tools.run("publish", "-r", queue, "-b", "is at work")
    tools.run("publish", "-r", queue, "-p", "-C", "text/plain", text=b"is at lunch")
    assert tools.run("get", "-q", queue) == b"is at work"
    assert tools.run("get", "-q", queue) == b"is at lunch"
    tools.run("publish", "-r", queue, "-b", "is at home")
    assert tools.run("delete-queue", "-q", queue) == b"1\n"


def test_an_empty_queue_and_an_absent_one(
    tools: Tools, channel: BlockingChannel, queue: str
) -> None:
    name = fresh("queue")
    channel.queue_declare(name, auto_delete=True)
    done = subprocess.run(tools.command("get", "-q", name), capture_output=True, timeout=WAIT_S)
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", b"")
    text = f"NOT_FOUND - no queue '{name}-2' in vhost '/'"
    assert text in tools.fail("get", "-q", f"{name}-2")


@pytest.mark.parametrize("options", [[], ["--no-ack"], ["--prefetch-count=1"]])
def test_consume_runs_a_program_per_message(
    tools: Tools, channel: BlockingChannel, tmp_path: Path, options: list[str]
) -> None:
    queue, received = fresh("queue"), tmp_path / "received"
    keep = keeper(received)
    channel.queue_declare(queue)
    channel.confirm_delivery()
    for number in range(4):
        channel.basic_publish("", queue, f"{number}\n")
    tools.run("consume", "-q", queue, "-c", "3", *options, keep)
    assert received.read_text() == "0\n1\n2\n"
    # What was not acked comes back after the tool has gone, so only its own place is sure.
    left = 0 if options == ["--no-ack"] else 1
    pump(channel.connection, lambda: ready_count(channel, queue) == left, f"{left} ready")
    channel.queue_delete(queue)


def keeper(received: Path) -> str:
    """A program that appends its input to a file; the tools take options even behind its name."""
    program = received.with_name("keep")
    program.write_text(f"#!/bin/sh\ncat >> {received}\n")
    program.chmod(0o700)
    return str(program)
