"""The key of a list of feeds."""

from __future__ import annotations

from typing import NamedTuple


class ListKey(NamedTuple):
    """The list of one user in one virtual host."""

    vhost: str
    owner: str
