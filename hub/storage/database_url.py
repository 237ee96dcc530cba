"""Which PostgreSQL a URL names, told without a driver: settings are read before it is imported.

The URL is libpq's, as the driver reads it. It may hold a password, so no error repeats it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from ...core.errors import ConfigError

SCHEMES = ("postgresql", "postgresql+asyncpg", "postgres")
FORM = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """`str()` gives host and database for people, and nothing that is secret."""

    dsn: str = field(repr=False)
    host: str
    database: str

    def __str__(self) -> str:
        return f"PostgreSQL database '{self.database}' at {self.host}"


def read_url(url: str) -> DatabaseUrl:
    """Raises `ConfigError` for what is no PostgreSQL URL, or can be read in two ways."""
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
    except ValueError:  # its text may hold a piece of the password
        raise ConfigError(f"can't be read; it has the form {FORM}") from None


def _describe(dsn: str, split: SplitResult) -> DatabaseUrl:
    query = parse_qs(split.query, strict_parsing=True) if split.query else {}
    hosts = split.netloc.rpartition("@")[2]
    if "host" not in query and "," not in hosts:
        _ = split.port  # raises `ValueError` for one that is none
    named = unquote(split.path.removeprefix("/"))
    return DatabaseUrl(
        dsn=dsn,
        host=unquote(hosts) or _last(query, "host") or "the default host",
        database=named or _last(query, "dbname") or _last(query, "database") or "of the user",
    )


def _last(query: dict[str, list[str]], name: str) -> str | None:
    return query[name][-1] if name in query else None
