"""Levels of areas: the loggers of a folder or module, such as `hub.delivery`, while the server
runs."""

from __future__ import annotations

import logging
import re
from importlib.util import find_spec
from typing import Final

from .formats import PACKAGE, area_of

LEVELS: Final = ("debug", "info", "warning", "error")
_AREA = re.compile(r"(app|core|hub)(\.[a-z_]+)*")


def is_area(area: str) -> bool:
    """Returns whether there is such a folder or module."""
    if not _AREA.fullmatch(area):
        return False
    try:
        return find_spec(PACKAGE + area) is not None
    except ModuleNotFoundError:
        return False


def levels() -> dict[str, str]:
    """Returns the level of each area that has one of its own."""
    loggers = logging.Logger.manager.loggerDict
    return {
        area_of(name): logging.getLevelName(logger.level).lower()
        for name, logger in sorted(loggers.items())
        if name.startswith(PACKAGE) and isinstance(logger, logging.Logger) and logger.level
    }


def set_level(area: str, level: str | None) -> None:
    """Sets the level of an area; with None that of the area around it holds again."""
    logging.getLogger(PACKAGE + area).setLevel(level.upper() if level else logging.NOTSET)
