"""Where the server is and who logs in: by flag, `WARREN_*`, profile or default, in this order.

Profiles are tables of `~/.config/warren/config.toml` (`XDG_CONFIG_HOME` is respected); `default` is
the one that is used without `--profile`.
"""

from __future__ import annotations

import base64
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...core.errors import ConfigError
from ...hub.pipeline.server_url import FORM, read_server_url
from .exit_codes import reason_of
from .passwords import password_in, password_of

URL: Final = "http://localhost:15672"
GUEST: Final = "guest"
"""Name and password of the user where nothing says otherwise."""
DEFAULT_PROFILE: Final = "default"
VARIABLES: Final = {
    "url": "WARREN_URL",
    "user": "WARREN_USER",
    "password": "WARREN_PASSWORD",
    "token": "WARREN_TOKEN",
    "profile": "WARREN_PROFILE",
}
"""The variables of the environment that commands read, beside those of settings."""
_WAYS: Final = f"--password-file, --token, {VARIABLES['password']}, or a profile that has one"
_KEYS: Final = ("url", "user", "password", "password_file", "token")


@dataclass(frozen=True, slots=True)
class Login:
    """A server, and a user with a password, or a token in place of both."""

    url: str
    user: str
    password: str
    token: str
    is_given: bool = True
    """Whether anything says who logs in; else it is `guest`."""

    def __repr__(self) -> str:
        return f"Login({self.url!r}, {self.user!r})"

    def authorization(self) -> str:
        if self.token:
            return f"Bearer {self.token}"
        pair = f"{self.user}:{self.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"


def read_login(
    given: Mapping[str, str | None], environment: Mapping[str, str] = os.environ
) -> Login:
    """Returns who logs in where; `given` are the flags. The password of a user other than `guest`
    is asked for if nothing gives one. Raises `ConfigError`."""
    flags = {name: value for name, value in given.items() if value is not None}
    variables = {name: environment[key] for name, key in VARIABLES.items() if key in environment}
    profile = _profile(flags.get("profile") or variables.get("profile"), environment)
    found = {**profile, **variables, **flags}
    url, user = server_url("--url", found.get("url", URL)), found.get("user", GUEST)
    secret = _secret(flags) or _secret(variables) or _secret(profile)
    kind, value = secret or ("password", _password(user))
    return Login(
        url=url,
        user=user,
        password=value if kind == "password" else "",
        token=value if kind == "token" else "",
        is_given=secret is not None or "user" in found,
    )


def _password(user: str) -> str:
    """Returns the password of a user for whom nothing is given. Raises as `password_of`."""
    return password_of(user, GUEST if user == GUEST else None, _WAYS)


def _secret(source: Mapping[str, str]) -> tuple[str, str] | None:
    """Returns the password or the token of one source. Raises `ConfigError` for both."""
    if "password_file" in source:
        source = {**source, "password": password_in(source["password_file"])}
    found = [(kind, source[kind]) for kind in ("password", "token") if kind in source]
    if len(found) > 1:
        raise ConfigError("both a password and a token are given: one of them is needed")
    return found[0] if found else None


def profiles_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the file of the profiles, which need not exist."""
    base = environment.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "warren" / "config.toml"


def _profile(name: str | None, environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the profile of a name. Raises `ConfigError` if it does not exist."""
    file = profiles_file(environment)
    try:
        profiles: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        profiles = {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"file {file}: {reason_of(error)}") from error
    if name is not None and name not in profiles:
        known = f"known: {', '.join(sorted(profiles))}" if profiles else "there is none"
        raise ConfigError(f"profile '{name}' is not in {file}; {known}")
    found = profiles.get(name or DEFAULT_PROFILE, {})
    wrong = None if isinstance(found, dict) else name or DEFAULT_PROFILE
    wrong = wrong or next((key for key in found if key not in _KEYS), None)
    if wrong is not None:
        raise ConfigError(f"file {file}: '{wrong}': a profile is a table of {', '.join(_KEYS)}")
    return {key: str(value) for key, value in found.items()}


def server_url(name: str, text: str) -> str:
    """Returns the URL without a slash at the end. Raises `ConfigError`, in which `name` is that of
    the parameter, unless it is one without credentials."""
    try:
        return read_server_url(text)
    except ValueError as error:
        raise ConfigError(f"{name} {error}: {FORM}") from None
