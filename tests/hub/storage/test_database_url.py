"""What is taken for a PostgreSQL, and that no complaint shows a password."""

from __future__ import annotations

import pytest

from warrenmq.core.errors import ConfigError
from warrenmq.hub.storage.database_url import read_url


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+asyncpg", "postgres", "PostgreSQL"])
def test_schemes_are_one(scheme: str) -> None:
    url = read_url(f"{scheme}://user:secret@db.example:5433/hub")
    assert url.dsn == "postgresql://user:secret@db.example:5433/hub"
    assert (url.host, url.database) == ("db.example:5433", "hub")


@pytest.mark.parametrize(
    ("rest", "shown"),
    [
        ("user:secret@[::1]:5432/hub", "'hub' at [::1]:5432"),
        ("user@/hub?host=/run/postgresql", "'hub' at /run/postgresql"),
        ("one:5432,two:5433/a%2Fb?sslmode=require", "'a/b' at one:5432,two:5433"),
        ("user:a%40b%2F%23@host", "'of the user' at host"),
        ("", "'of the user' at the default host"),
    ],
)
def test_host_and_database_are_shown(rest: str, shown: str) -> None:
    url = read_url(f"postgresql://{rest}")
    assert str(url) == f"PostgreSQL database {shown}"
    assert "secret" not in repr(url)


@pytest.mark.parametrize(
    "url",
    [
        "secret",
        "mysql://user:secret@host/hub",
        "sqlite+aiosqlite:///secret",
        "postgresql:/user:secret@host/hub",
        "postgresql://user:sec@ret@host/hub",
        "postgresql://user:sec/ret@host/hub",
        "postgresql://user:12/secret@host/hub",
        "postgresql://user:sec?ret@host/hub",
        "postgresql://user:sec#ret@host/hub",
        "postgresql://user:sec[ret@host/hub",
        "postgresql://user:secret@host:port/hub",
        "postgresql://user:secret@host:99999/hub",
        "postgresql://user:secret@host/hub?connect",
    ],
)
def test_a_url_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_url(url)
    for piece in ("secret", "sec@", "ret", "12/", "sec["):
        assert piece not in str(caught.value)
    assert "postgresql://USER:PASSWORD@HOST:PORT/DATABASE" in str(caught.value)
    assert caught.value.__cause__ is None
