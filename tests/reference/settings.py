"""docs/reference/settings.md: each setting with its default, from their declaration."""

from __future__ import annotations

from collections.abc import Iterator

from warrenmq.app.configuration.descriptions import heading, help_text
from warrenmq.app.configuration.loading import ENVIRONMENT_PREFIX, NAMES, TYPES
from warrenmq.app.configuration.settings import Settings

from .tables import code, page, table

INTRODUCTION = """`warren serve` reads each setting from a flag (`--amqp-port 5673`), an \
environment variable, or the TOML file given with `--config` or `WARREN_CONFIG`, where its name is \
`amqp_port`. A flag comes first, then the variable, then the file. `make run` uses the \
environment: `WARREN_AMQP_PORT=5673 make run`.

`warren config > warren.toml` prints a file with all of them; with an unknown \
name or an invalid value the server does not start, and the exit code is 2. Names that end in `_s` \
are numbers of seconds, those in `_bytes` of bytes. [Running Warren](../operations.md) and [TLS, \
web pages and proxies](../network.md) show settings in use."""


def sections() -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for name in NAMES:
        if title := heading(TYPES[name]):
            rows = found[title] = []
        rows.append(name)
    defaults = Settings()
    for title, names in found.items():
        yield f"## {title}"
        yield table(
            ("variable", "default", "meaning"),
            [
                (
                    code(ENVIRONMENT_PREFIX + name.upper()),
                    shown(getattr(defaults, name)),
                    help_text(TYPES[name]),
                )
                for name in names
            ],
        )


def shown(value: object) -> str:
    """A default, as a variable has it."""
    if isinstance(value, bool):
        value = int(value)
    return code(f"{value:g}" if isinstance(value, float) else value)


def write() -> str:
    return page("Settings", INTRODUCTION, sections())
