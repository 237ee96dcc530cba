"""The URL of a Warren server, as commands and the data source take it."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

FORM: Final = (
    "give http://HOST:PORT or https://HOST:PORT; user and password are options of their own"
)
_LOGIN: Final = re.compile(r"//.*@")


def read_server_url(text: str) -> str:
    """Returns the URL without a slash at the end.

    Raises `ValueError`, whose text is the URL without what may be a password in it.
    """
    url = text.rstrip("/")
    if not _is_server(url):
        raise ValueError(_LOGIN.sub("//", url))
    return url


def _is_server(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_whole = parts.port != 0 and bool(parts.hostname) and parts.username is None
    except ValueError:  # A port that is none, or half of an address.
        return False
    return is_whole and parts.scheme in ("http", "https")
