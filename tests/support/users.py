"""Users for tests: the hash of their password costs next to nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

from warrenmq.core.auth import Users

GUEST_HASH = (
    "$argon2id$v=19$m=8,t=1,p=1$5rbLTwiFzVdyIU9CwjY8FQ$tXDfbAY2IgzKeWTMC/X9kY/lme0uQEoquT3JGOdsHSw"
)


def guest_users(clock: Callable[[], float] = time.monotonic) -> Users:
    """The administrator `guest` with the password `guest` and all rights in `/`."""
    users = Users(clock)
    users.add_hashed("guest", GUEST_HASH, ("administrator",))
    users.set_permissions("guest", "/", ".*", ".*", ".*")
    return users
