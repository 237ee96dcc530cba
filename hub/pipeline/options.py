"""The options of the data source, read and checked."""

from __future__ import annotations

import base64
import difflib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeVar

from .errors import OptionError
from .server_url import FORM, read_server_url

T = TypeVar("T")

SERVER_OPTIONS: Final = ("url", "vhost", "user", "password", "token")
READ_OPTIONS: Final = (
    *SERVER_OPTIONS, "stream", "source", "startingOffset", "endingOffset", "maxRowsPerTrigger",
    "maxBytesPerTrigger", "failOnDataLoss", "minPartitions",
)  # fmt: skip
TOKEN_VARIABLE: Final = "WARREN_TOKEN"
"""The variable of the environment with the token of who gives no login."""
_TOKEN: Final = re.compile(r"[!-~]+")
_ALIKE: Final = 0.5
"""How alike a name must be, from 0 to 1, to be suggested for one that is unknown."""
_OF_KAFKA: Final = {
    "kafka.bootstrap.servers": "url", "subscribe": "stream", "assign": "stream",
    "topic": "exchange",
}  # fmt: skip
"""What options of Spark's Kafka source and sink are called here, where it is another word."""
EARLIEST: Final = "earliest"
LATEST: Final = "latest"
Boundary = str | int | datetime
"""A place to begin or to end: `earliest`, `latest`, an offset, or a time of arrival."""


@dataclass(frozen=True, slots=True)
class ServerLogin:
    """A server, and who logs in there: a user with a password, or a token in place of both."""

    url: str
    user: str
    password: str
    token: str = ""

    def __repr__(self) -> str:
        return f"Server({self.url!r})"

    def authorization(self) -> str:
        """Returns the value of the header."""
        if self.token:
            return f"Bearer {self.token}"
        pair = f"{self.user}:{self.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"

    def options(self) -> dict[str, str]:
        """Returns the options that name it."""
        if self.token:
            return {"url": self.url, "token": self.token}
        return {"url": self.url, "user": self.user, "password": self.password}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a read."""

    server: ServerLogin
    vhost: str
    stream: str
    source: str | None
    starting: Boundary
    ending: Boundary
    max_rows: int | None
    max_bytes: int | None
    fail_on_data_loss: bool
    min_partitions: int | None


def read_options(options: Mapping[str, str]) -> ReadOptions:
    """Reads the options of a read. Raises `OptionError` naming the option, its value and what it
    may be; for one that is unknown the nearest."""
    given = {name.lower(): value for name, value in options.items()}
    refuse_unknown(given, READ_OPTIONS)
    rows, size = optional(given, "maxRowsPerTrigger"), optional(given, "maxBytesPerTrigger")
    if rows is not None and size is not None:
        raise OptionError(
            f"maxRowsPerTrigger={rows} and maxBytesPerTrigger={size}: Spark takes one; leave out "
            "the other"
        )
    return ReadOptions(
        server=server_options(given),
        vhost=given.get("vhost", "/"),
        stream=required(given, "stream", "prices"),
        source=_choice(given, "source", ("queue", "exchange")),
        starting=_boundary(given, "startingOffset", EARLIEST),
        ending=_boundary(given, "endingOffset", LATEST),
        max_rows=rows,
        max_bytes=size,
        fail_on_data_loss=_flag(given, "failOnDataLoss", True),
        min_partitions=optional(given, "minPartitions"),
    )


def server_options(given: Mapping[str, str]) -> ServerLogin:
    """Reads the options that say which server it is; `given` has names in lower case."""
    try:
        url = read_server_url(required(given, "url", "http://localhost:15672"))
    except ValueError as error:
        raise OptionError(f"url='{error}': {FORM}") from None
    token = given.get("token", "")
    if token:
        _check_token(token, given)
    return ServerLogin(url, given.get("user", "guest"), given.get("password", "guest"), token)


def _check_token(token: str, given: Mapping[str, str]) -> None:
    """Raises `OptionError` without the token."""
    if "user" in given or "password" in given:
        raise OptionError("token beside user or password: give one of both")
    if not _TOKEN.fullmatch(token):
        raise OptionError("token has what is no part of one: give it as 'warren token create' does")


def with_token(
    options: Mapping[str, str], environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Returns options with the token of the environment, where none of them says who logs in."""
    has_login = not {"user", "password", "token"}.isdisjoint(map(str.lower, options))
    token = "" if has_login else environment.get(TOKEN_VARIABLE, "")
    return {**options, **({"token": token} if token else {})}


def refuse_unknown(given: Mapping[str, str], known: tuple[str, ...]) -> None:
    """Raises `OptionError` for a name that is not known; `given` has names in lower case."""
    names = {name.lower(): name for name in known}
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(_OF_KAFKA.get(name, name), names, 1, _ALIKE)
            hint = f"; did you mean '{names[near[0]]}'?" if near else "."
            raise OptionError(f"option '{name}' is unknown{hint} There are {', '.join(known)}")


def required(given: Mapping[str, str], name: str, example: str) -> str:
    """Returns an option that can't be left out. Raises `OptionError` if it is."""
    value = given.get(name.lower())
    if not value:
        raise OptionError(f"option '{name}' is missing: add .option('{name}', '{example}')")
    return value


def _parsed(
    given: Mapping[str, str], name: str, parse: Callable[[str], T], wanted: str
) -> T | None:
    value = given.get(name.lower())
    if value is None:
        return None
    try:
        return parse(value.strip())
    except ValueError:
        raise OptionError(f"{name}='{value}': give {wanted}") from None


def optional(given: Mapping[str, str], name: str, *, low: int = 1) -> int | None:
    """Returns a whole number, None without one. Raises `OptionError` for what is none, or less."""

    def parse(value: str) -> int:
        number = int(value)
        if number < low:
            raise ValueError
        return number

    return _parsed(given, name, parse, f"a whole number of {low} or more")


def _flag(given: Mapping[str, str], name: str, default: bool) -> bool:
    value = _parsed(
        given, name, lambda text: ("false", "true").index(text.lower()), "true or false"
    )
    return default if value is None else bool(value)


def _choice(given: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str | None:
    return _parsed(given, name, lambda text: allowed[allowed.index(text)], " or ".join(allowed))


def _boundary(given: Mapping[str, str], name: str, default: str) -> Boundary:
    wanted = "earliest, latest, an offset, or a time such as 2026-01-31T12:00:00Z"
    value = _parsed(given, name, _read_boundary, wanted)
    return default if value is None else value


def _read_boundary(value: str) -> Boundary:
    if value.lower() in (EARLIEST, LATEST):
        return value.lower()
    if value.isdecimal():
        return int(value)
    time = datetime.fromisoformat(value)
    return time if time.tzinfo else time.replace(tzinfo=UTC)
