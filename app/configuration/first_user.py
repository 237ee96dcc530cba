"""Warns when `default_user` and `default_pass` have no effect."""

from __future__ import annotations

import asyncio
import logging

from ...core.auth import Users, hashes
from .settings import Settings

logger = logging.getLogger(__name__)
_DEFAULTS = Settings()


async def warn_of_unused(settings: Settings, users: Users) -> None:
    """Logs a warning if an existing data directory has another administrator or password than the
    settings name. The password is compared in a thread, because hashing it takes long."""
    name, password = settings.default_user, settings.default_pass
    if (name, password) == (_DEFAULTS.default_user, _DEFAULTS.default_pass):
        return
    if users.get(name) is None:
        reason = f"it has no user '{name}'"
    elif await asyncio.to_thread(hashes.matches, users.password_hash(name), password):
        return
    else:
        reason = f"user '{name}' has another password"
    logger.warning(
        "default_user and default_pass have no effect on an existing data directory: %s; "
        "'warren user' and PUT /api/users/NAME change users",
        reason,
    )
