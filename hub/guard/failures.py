"""The errors of lookups."""

from __future__ import annotations


class NoAddress(Exception):
    """The name has no address, or its servers do not return one."""


class NoReply(NoAddress):
    """No server answered in time."""


class NoServer(Exception):
    """No name server could be reached, which is not the name's fault."""
