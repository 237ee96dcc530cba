"""Limits of virtual hosts and users, which can be set while the server runs.

A limit is 0 or more; -1, or none at all, is no limit. It applies to new connections, channels and
queues: nobody is disconnected and no queue deleted when it is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from ..errors import precondition_failed

if TYPE_CHECKING:
    from ..message.model import Table

MAX_CONNECTIONS: Final = "max-connections"
MAX_CHANNELS: Final = "max-channels"
MAX_QUEUES: Final = "max-queues"
VHOST_LIMITS: Final = (MAX_CONNECTIONS, MAX_QUEUES)
USER_LIMITS: Final = (MAX_CONNECTIONS, MAX_CHANNELS)
UNLIMITED: Final = -1
_HIGHEST: Final = 2**63 - 1


def checked(whose: str, known: tuple[str, ...], limits: Mapping[str, object]) -> dict[str, int]:
    """Returns valid limits; raises `ChannelError` 406 naming the first that is not."""
    found: dict[str, int] = {}
    for name, value in limits.items():
        if name not in known:
            raise precondition_failed(
                f"{whose} has no limit '{name}'; its limits are {' and '.join(known)}"
            )
        if isinstance(value, bool) or not isinstance(value, int):
            raise precondition_failed(
                f"limit '{name}' of {whose} must be an integer, not {value!r}"
            )
        if not UNLIMITED <= value <= _HIGHEST:
            raise precondition_failed(
                f"limit '{name}' of {whose} is {value}: 0 or more is needed, or -1 for no limit"
            )
        found[name] = value
    return found


def merged(
    whose: str, known: tuple[str, ...], limits: Mapping[str, int], name: str, value: int | None
) -> dict[str, int]:
    """Returns the limits with one changed, or removed by None. Raises as `checked`."""
    found = dict(limits)
    if value is not None:
        return found | checked(whose, known, {name: value})
    checked(whose, known, {name: UNLIMITED})
    found.pop(name, None)
    return found


class LimitStorage(Protocol):
    """Stores the limits of a virtual host."""

    def save_limits(self, limits: Table) -> None: ...


class VhostLimits:
    """The limits of one virtual host."""

    def __init__(self, vhost: str, storage: LimitStorage) -> None:
        self._vhost = vhost
        self._storage = storage
        self._values: Mapping[str, int] = {}

    def __getitem__(self, name: str) -> int:
        """Returns a limit, -1 if there is none."""
        return self._values.get(name, UNLIMITED)

    def as_table(self) -> dict[str, int]:
        """Returns the limits that were set."""
        return dict(self._values)

    def set(self, limits: Mapping[str, object]) -> None:
        """Replaces all limits. Raises `ChannelError` 406 for an invalid one."""
        values = checked(self._whose, VHOST_LIMITS, limits)
        self._storage.save_limits(dict(values))
        self._values = values

    def set_one(self, name: str, value: int | None) -> None:
        """Sets one limit, or clears it with None. Raises `ChannelError` 406 for an invalid one."""
        self.set(merged(self._whose, VHOST_LIMITS, self._values, name, value))

    def check_queues(self, name: str, count: int) -> None:
        """Raises `ChannelError` 406 if the virtual host has as many queues as it may."""
        limit = self[MAX_QUEUES]
        if 0 <= limit <= count:
            raise precondition_failed(
                f"cannot declare queue '{name}': queue limit in vhost '{self._vhost}' "
                f"({limit}) is reached"
            )

    @property
    def _whose(self) -> str:
        return f"vhost '{self._vhost}'"
