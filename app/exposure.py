"""Refuses insecure configurations on addresses that other machines can reach.

There a well-known or easily guessed first password, and passwords without TLS, must be allowed by
a setting each; the error names it.
"""

from __future__ import annotations

from starlette.types import Scope

from ..core.auth import GUEST, Users, hashes
from ..core.errors import ConfigError
from ..core.server.caller import is_loopback
from .access.clients import is_listed
from .access.local_requests import peer_of
from .configuration.settings import Settings
from .http.listen import addresses_of

PASSWORD_MIN_CHARACTERS = 12
_KINDS_MIN = 4
"""Different characters in a password."""


class Exposure:
    """Checks the settings against the addresses that are listened on.

    Raises `ConfigError` for a host that can't be resolved.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._beyond = [one for one in addresses_of(settings.host) if not is_loopback(one)]
        self.takes_plaintext = not self._beyond or settings.allow_plaintext

    def check_ports(self) -> None:
        """Raises `ConfigError` if other machines could log in without TLS only."""
        settings = self._settings
        if self.takes_plaintext or settings.tls_cert:
            return
        if not (settings.http_proxies or settings.proxy_protocol_from):
            raise self._config_error(
                "passwords would be sent in plain text: set tls_cert and tls_key, or "
                "WARREN_ALLOW_PLAINTEXT=1 where only trusted machines reach it"
            )

    def first_user(self) -> tuple[str, str] | None:
        """Returns name and password of a new server's first administrator; None if the settings
        name none, and `guest` could be reached from other machines.

        Raises `ConfigError` for a well-known name or a weak password.
        """
        settings = self._settings
        name, password = settings.default_user, settings.default_pass
        if self._beyond and name == GUEST and not settings.allow_guest:
            if password == GUEST:
                return None
            raise self._config_error(
                "the first user would be guest: set WARREN_DEFAULT_USER too, or "
                "WARREN_ALLOW_GUEST=1"
            )
        if not self.takes_password(name, password):
            raise self._config_error(
                f"the first user's password is easily guessed: set one of "
                f"{PASSWORD_MIN_CHARACTERS} characters or more as WARREN_DEFAULT_PASS, or "
                f"WARREN_ALLOW_WEAK_PASSWORD=1"
            )
        return name, password

    def takes_password(self, name: str, password: str) -> bool:
        """Returns whether the first administrator may have this password: where other machines can
        reach the server, it must not be easily guessed."""
        if not self._beyond or self._settings.allow_weak_password:
            return True
        return not _is_weak(name, password)

    def check_guest(self, users: Users) -> None:
        """Raises `ConfigError` if `guest` exists with its default password; this takes as long as a
        login, because the password is hashed."""
        if not self._beyond or self._settings.allow_guest or users.get(GUEST) is None:
            return
        if hashes.matches(users.password_hash(GUEST), GUEST):
            raise self._config_error(
                "user guest has its default password: start with host localhost and delete the "
                "user or change the password, or set WARREN_ALLOW_GUEST=1"
            )

    def may_log_in(self, scope: Scope) -> bool:
        """Returns whether passwords are accepted on the connection of this request."""
        return (
            self.takes_plaintext
            or scope["scheme"] == "https"
            or is_listed(scope)
            or is_loopback(peer_of(scope))
        )

    def _config_error(self, text: str) -> ConfigError:
        return ConfigError(f"{self._beyond[0]} can be reached from other machines, and {text}")


def _is_weak(name: str, password: str) -> bool:
    rest = password.lower().replace(name.lower(), "")
    return len(rest) < PASSWORD_MIN_CHARACTERS or len(set(rest)) < _KINDS_MIN
