"""What `warren listen` does with messages: print, run a command, or post."""

from __future__ import annotations

import json
import os
import subprocess
from base64 import b64decode
from collections.abc import Callable
from typing import Final
from urllib.parse import quote, urlsplit

import click

from .stream_connection import LOST, Message, connect

FORWARD_S: Final = 30.0

Handle = Callable[[Message], str]
"""Handles a message; returns what went wrong, or nothing."""


def printing(message: Message) -> str:
    """Prints the message; JSON escapes what could control a terminal."""
    click.echo(json.dumps(message))
    return ""


def running(command: str) -> Handle:
    """Returns what runs a command of the shell with the body of each message."""

    def run(message: Message) -> str:
        named = {
            f"WARREN_{name.upper()}": str(message.get(name, ""))
            for name in ("id", "cursor", "exchange", "routing_key", "content_type")
        }
        environment = {**os.environ, **named}
        ended = subprocess.run(
            command, shell=True, input=body_of(message), env=environment, check=False
        )
        return f"the command exited with {ended.returncode}" if ended.returncode else ""

    return run


def forwarding(url: str) -> Handle:
    """Returns what posts the body of each message to a URL."""
    parts = urlsplit(url)
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"

    def forward(message: Message) -> str:
        headers = {
            "Content-Type": message.get("content_type", "application/octet-stream"),
            "webhook-id": message["id"],
            "X-AMQP-Routing-Key": quote(message["routing_key"], safe="!#$&'()*+,/:;=?@[]~ "),
        }
        connection = connect(url, FORWARD_S)
        try:
            connection.request("POST", target, body_of(message), headers)
            status = connection.getresponse().status
        except LOST as error:
            return f"{url}: {error}"
        finally:
            connection.close()
        return "" if 200 <= status < 300 else f"{url} answered {status}"

    return forward


def body_of(message: Message) -> bytes:
    if "body_base64" in message:
        return b64decode(message["body_base64"])
    return str(message["body"]).encode()
