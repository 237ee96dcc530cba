"""Reads PostgreSQL URLs without the driver, which is imported later than settings are read.

The URL has libpq's form, as the driver reads it. It may have a password, so no error repeats it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from ...core.errors import ConfigError

SCHEMES = ("postgresql", "postgresql+asyncpg", "postgres")
FORM = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """A PostgreSQL URL; `str()` returns its host and database, and nothing secret."""

    dsn: str = field(repr=False)
    host: str
    database: str

    def __str__(self) -> str:
        return f"PostgreSQL database '{self.database}' at {self.host}"


def read_url(url: str) -> DatabaseUrl:
    """Reads a URL. Raises `ConfigError` if it is not PostgreSQL's or is ambiguous."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.lower() not in SCHEMES:
        raise ConfigError(f"is no PostgreSQL URL; it has the form {FORM}")
    if rest.count("@") > 1 or "@" in rest.partition("/")[2] or "#" in rest:
        raise ConfigError(
            "has a character that must be percent-encoded (@ is %40, / is %2F, # is %23, "
            f"? is %3F); it has the form {FORM}"
        )
    dsn = f"postgresql://{rest}"
    try:
        return _describe(dsn, urlsplit(dsn))
    except ValueError:  # its text may have a part of the password
        raise ConfigError(f"can't be read; it has the form {FORM}") from None


def _describe(dsn: str, split: SplitResult) -> DatabaseUrl:
    query = parse_qs(split.query, strict_parsing=True) if split.query else {}
    hosts = split.netloc.rpartition("@")[2]
    if "host" not in query and "," not in hosts:
        _ = split.port  # raises `ValueError` for an invalid one
    named = unquote(split.path.removeprefix("/"))
    return DatabaseUrl(
        dsn=dsn,
        host=unquote(hosts) or _last(query, "host") or "the default host",
        database=named or _last(query, "dbname") or _last(query, "database") or "of the user",
    )


def _last(query: dict[str, list[str]], name: str) -> str | None:
    return query[name][-1] if name in query else None
