"""`warren queue` and `warren exchange`."""

from __future__ import annotations

import json
import re

import pytest

from .conftest import Command


def test_a_queue_from_its_declaration_to_its_end(command: Command) -> None:
    more = (
        "--type",
        "quorum",
        "--argument",
        "x-max-length=7",
        "--argument",
        "x-overflow=drop-head",
    )
    assert command("queue", "declare", "jobs", *more) == "queue 'jobs' in vhost '/' is declared\n"
    assert command("queue", "declare", "jobs", *more) == "queue 'jobs' in vhost '/' was there\n"
    assert "x-max-length" in command("queue", "declare", "jobs", "--type", "quorum", code=4)
    command("queue", "declare", "others")
    shown = json.loads(command("queue", "show", "jobs", "--json"))
    assert shown["arguments"] == {
        "x-queue-type": "quorum", "x-max-length": 7, "x-overflow": "drop-head",
    }  # fmt: skip
    command("publish", "q", "jobs", "-", "--lines", given="1\n2\n3\n")
    head, first, second = command("queue", "list", "--sort", "messages_ready").splitlines()
    assert head.split()[:4] == ["VHOST", "NAME", "TYPE", "MESSAGES_READY"]
    assert (first.split()[1], second.split()[1]) == ("jobs", "others")
    assert len(command("queue", "list", "--name", "^job", "--vhost", "/").splitlines()) == 2

    def payloads(*words: str) -> list[str]:
        lines = command("queue", *words, "--json").splitlines()
        return [json.loads(line)["payload"] for line in lines]

    assert payloads("peek", "jobs") == ["1", "2", "3"]
    assert payloads("peek", "jobs", "--from", "last", "--count", "1") == ["3"]
    assert payloads("get", "jobs", "--requeue") == payloads("get", "jobs") == ["1"]
    assert command("queue", "move", "jobs", "--queue", "others", "--count", "1") == (
        "1 message is moved, 1 is left\n"
    )
    assert payloads("peek", "others") == ["2"]
    for verb, state in (("pause", "paused"), ("resume", "running")):
        assert command("queue", verb, "jobs") == f"queue 'jobs' in vhost '/' is {state}\n"
        assert state in command("queue", "list", "--name", "jobs")
    assert "either --queue or --exchange" in command("queue", "move", "jobs", code=2)
    unroutable = ("queue", "move", "jobs", "--exchange", "amq.direct", "--key", "none")
    assert "the move has ended" in command(*unroutable, code=3)
    assert "not empty" in command("queue", "delete", "jobs", "--if-empty", code=4)
    command("queue", "purge", "jobs")
    assert command("queue", "delete", "jobs", "--if-empty").endswith("is deleted\n")
    assert command("queue", "delete", "jobs", "--idempotent").endswith("does not exist\n")
    command("queue", "delete", "others")
    assert command("queue", "list") == "no queues\n"


def test_a_table_fits_its_terminal(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "[red]" + "x" * 100
    command("queue", "declare", name)
    with monkeypatch.context() as terminal:
        terminal.setattr("sys.stdout.isatty", lambda: True)
        terminal.setenv("COLUMNS", "80")
        terminal.setenv("TERM", "xterm")
        shown = command("queue", "list")
    plain = re.sub("\x1b\\[[0-9;]*m", "", shown)
    assert max(map(len, plain.splitlines())) <= 80
    assert plain.count("x") == 100 and "[red]" in plain.replace("\n", "")
    assert "\x1b[32mrunning" in shown
    command("queue", "delete", name)


def test_an_exchange_and_what_it_is_bound_to(command: Command) -> None:
    more = ("--type", "fanout", "--argument", "alternate-exchange=amq.fanout")
    assert command("exchange", "declare", "news", *more).endswith("is declared\n")
    shown = json.loads(command("exchange", "show", "news", "--json"))
    assert (shown["type"], shown["arguments"]) == ("fanout", {"alternate-exchange": "amq.fanout"})
    command("queue", "declare", "log")
    assert command("exchange", "bind", "news", "log", "--key", "k").endswith("with key 'k'\n")
    command("publish", "x", "news", "hi")
    assert "hi" in command("queue", "get", "log")
    row = command("exchange", "list", "--name", "^news").splitlines()[1]
    assert row.split()[:5] == ["/", "news", "fanout", "yes", "no"]
    command("exchange", "bind", "news", "amq.topic", "--to-exchange", "--argument", "n=1")
    listed = command("exchange", "bindings", "news").splitlines()[1:]
    assert [line.split()[:2] for line in sorted(listed)] == [
        ["exchange", "amq.topic"], ["queue", "log"],
    ]  # fmt: skip
    unbound = ("exchange", "unbind", "news", "amq.topic", "--to-exchange")
    assert "lists all" in command(*unbound, code=4)
    assert command(*unbound, "--argument", "n=1").endswith("is removed\n")
    assert command(*unbound, "--idempotent").endswith("does not exist\n")
    assert "in use" in command("exchange", "delete", "news", "--if-unused", code=4)
    assert command("exchange", "delete", "news").endswith("is deleted\n")
    assert command("exchange", "delete", "news", "--idempotent").endswith("does not exist\n")
    command("queue", "delete", "log")
