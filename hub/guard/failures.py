"""How looking up a name may fail."""

from __future__ import annotations


class NoAddress(Exception):
    """The name has none, or its servers don't tell."""


class NoReply(NoAddress):
    """No server has answered in time."""


class NoServer(Exception):
    """No name server could be asked: says nothing about the name."""
