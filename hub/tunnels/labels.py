"""The labels in memory: those that are enrolled, and the last ones that were released."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from ...core.clock import Clock
from .errors import EnrolmentRefused, ReleasedTunnel, UnknownTunnel
from .registration import TunnelRegistration
from .settings import TunnelSettings
from .tunnel import Tunnel

MAX_RELEASED: Final = 1_000
"""Released labels that are remembered, 2 kB each."""
HELD_S: Final = 600.0
"""How long a released label is kept from other users: longer than what was under way to its
application, such as a verification, can take to end."""


class Labels:
    """Finds tunnels by their labels and tokens."""

    def __init__(self, settings: TunnelSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._enrolled: dict[str, Tunnel] = {}
        self._released: dict[str, Tunnel] = {}
        """The oldest first. Their last requests may still be replied to."""

    def all(self) -> list[Tunnel]:
        """Returns all that are enrolled."""
        return list(self._enrolled.values())

    def get(self, label: str) -> Tunnel | None:
        """Returns the tunnel if it is enrolled."""
        return self._enrolled.get(label)

    def released(self, label: str) -> Tunnel | None:
        return self._released.get(label)

    def blocked(self) -> list[Tunnel]:
        """Returns the released ones that an administrator keeps from being enrolled."""
        now = self._clock.wall_s()
        return [one for one in self._released.values() if now < one.registration.blocked_until]

    def of(self, label: str) -> Tunnel:
        """Returns the tunnel for a requestor. Raises `UnknownTunnel` and `ReleasedTunnel`."""
        found = self._enrolled.get(label) or self._released.get(label)
        if found is None or found.is_lapsed:
            raise UnknownTunnel("no application has this label", field="label", value=label)
        if found.registration.is_released:
            raise ReleasedTunnel(label)
        return found

    def with_token(self, label: str, token: str) -> Tunnel:
        """Returns the tunnel for its application, a lapsed one too.

        Raises `ReleasedTunnel`, and `UnknownTunnel` for another token too, so that tokens can't be
        told from labels.
        """
        found = self._enrolled.get(label) or self._released.get(label)
        if found is None or not found.registration.has_token(token):
            raise _not_with_this_token(label)
        if found.registration.is_released:
            raise ReleasedTunnel(label)
        return found

    def to_reply(self, label: str, token: str) -> Tunnel:
        """Returns the tunnel for a reply, a released one too, and one whose token has changed since
        the request was passed on. Raises `UnknownTunnel`."""
        found = self._enrolled.get(label) or self._released.get(label)
        if found is None or not found.takes_replies_with(token):
            raise _not_with_this_token(label)
        return found

    def require_room(self, owner: str) -> None:
        """Raises `EnrolmentRefused` if the owner can't have another label."""
        settings = self._settings
        owned = sum(tunnel.registration.owner == owner for tunnel in self._enrolled.values())
        for count, limit, whose in (
            (owned, settings.max_labels_per_owner, "of one user"),
            (len(self._enrolled), settings.max_labels, "in all"),
        ):
            if count >= limit:
                reason = "too many labels are enrolled; release one"
                raise EnrolmentRefused(reason, field="name", limit=f"{limit} {whose}")

    def require_unblocked(self, wanted: TunnelRegistration) -> None:
        """Raises `EnrolmentRefused` for a label that is blocked, and for any new label of an owner
        who has a blocked one."""
        for one in self.blocked():
            found = one.registration
            if wanted.label == found.label or (found.owner and wanted.owner == found.owner):
                until = datetime.fromtimestamp(found.blocked_until, UTC)
                reason = f"an administrator has closed '{found.label}'"
                limit = f"until {until:%Y-%m-%dT%H:%M:%SZ}"
                raise EnrolmentRefused(reason, field="name", value=wanted.label, limit=limit)

    def require_free(self, wanted: TunnelRegistration) -> None:
        """Raises `EnrolmentRefused` for a label that was another owner's until just now."""
        before = self._released.get(wanted.label)
        if before is None or before.registration.owner == wanted.owner:
            return
        left_s = (before.registration.released_at or 0.0) + HELD_S - wanted.made_at
        if left_s > 0:
            reason = f"was another user's until just now; it is free in {left_s:.0f} s"
            raise EnrolmentRefused(reason, field="name", value=wanted.label)

    def enter(self, tunnel: Tunnel) -> None:
        """Adds a tunnel whose registration is stored."""
        label = tunnel.registration.label
        if tunnel.registration.is_released:
            self._enrolled.pop(label, None)
            self._released[label] = tunnel
        else:
            self._released.pop(label, None)
            self._enrolled[label] = tunnel

    def drop(self, label: str) -> None:
        """Forgets that a label was released."""
        del self._released[label]

    def excess(self) -> str | None:
        """Returns the label to be forgotten because too many are remembered."""
        if len(self._released) <= MAX_RELEASED:
            return None
        now = self._clock.wall_s()
        free = (one.registration for one in self._released.values())
        return next((one.label for one in free if one.blocked_until <= now), None)


def _not_with_this_token(label: str) -> UnknownTunnel:
    return UnknownTunnel("is not enrolled with this token", field="name", value=label)
