"""Documents for the audit log: what has changed between two of them, without secrets.

Values are left out by their keys, and URLs are cut to scheme and host: the rest of a callback or of
an AMQP URI may be a credential.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote

MAX_CHARACTERS: Final = 8_192
"""The limit of a document as JSON; of a longer one only the length is kept."""
HIDDEN: Final = "(not shown)"
_SECRET_KEYS: Final = re.compile(
    r"password|passphrase|secret|token|credential|hash$|auth(?!or)|cookie|headers|body|payload",
    re.IGNORECASE,
)
_FIGURES: Final = re.compile(
    r"_details$|_stats$|^messages?(_|$)|^oldest_message_age_s$|^memory$|^consumer|^(incoming|deliveries|node|state)$"
)
"""Keys of what is measured, which no request has set."""
_URL: Final = re.compile(r"^([a-z][a-z0-9+.-]*://)(?:[^/?#@]*@)?([^/?#]*)(.*)$", re.I | re.S)

Document = dict[str, Any]


def differences(before: Any, after: Any) -> tuple[str, str]:
    """Returns both as JSON, reduced to what differs and is no figure; a missing one is an empty
    text."""
    before, after = _settings(before), _settings(after)
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        before, after = _part(before, keys), _part(after, keys)
    return _text(before), _text(after)


def path_of(names: Iterable[str]) -> str:
    """Returns the path below `/api` with these decoded segments, of which URLs are cut."""
    return "/api/" + "/".join(quote(without_path(name), safe="") for name in names)


def _settings(document: Any) -> Any:
    if not isinstance(document, dict):
        return document
    return {key: value for key, value in document.items() if not _FIGURES.search(key)}


def _part(document: Document, keys: list[str]) -> Document:
    return {key: document[key] for key in keys if key in document}


def _text(document: Any) -> str:
    if document is None or document == {}:
        return ""
    text = json.dumps(_shown(document), ensure_ascii=False)
    return text if len(text) <= MAX_CHARACTERS else json.dumps({"characters": len(text)})


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: HIDDEN if _SECRET_KEYS.search(key) and one not in (None, "") else _shown(one)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [_shown(one) for one in value]
    return without_path(value) if isinstance(value, str) else value


def without_path(text: str) -> str:
    """Returns scheme and host of a URL, and any other text as it is."""
    found = _URL.match(text)
    if found is None:
        return text
    rest = "/..." if found[3] not in ("", "/") else found[3]
    return found[1] + found[2] + rest
