"""A configuration file with every setting, its help text and its default, all commented out."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator

from .descriptions import heading, help_text
from .loading import ENVIRONMENT_PREFIX, NAMES, TYPES
from .settings import Settings

_COLUMNS = 96
_HEAD = f"""\
Settings of Warren (TOML): `warren serve --config FILE`, or {ENVIRONMENT_PREFIX}CONFIG=FILE in the
environment. The values below are the defaults; take the # away to change one. A flag or a variable
such as {ENVIRONMENT_PREFIX}HTTP_PORT takes precedence, and an unknown name is refused."""


def example(**given: object) -> str:
    """Returns the text of the file, in the order of the settings.

    `given` are values other than the defaults: their lines are in force.
    """
    return "\n".join(_lines(given)) + "\n"


def _lines(given: dict[str, object]) -> Iterator[str]:
    yield from _comment(_HEAD)
    defaults = Settings()
    for name in NAMES:
        if title := heading(TYPES[name]):
            yield from ("", f"# --- {title} ---")
        yield ""
        yield from _comment(help_text(TYPES[name]))
        value = given.get(name, getattr(defaults, name))
        yield f"{'' if name in given else '#'}{name} = {_toml(value)}"


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, _COLUMNS, break_on_hyphens=False)]


def _toml(value: object) -> str:
    """Returns a value as TOML: strings, numbers and truth values are written as in JSON."""
    return json.dumps(value, ensure_ascii=False)
