"""The hub's settings, as `/api/hub/environment` shows them."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from ...hub.settings import HubSettings
from .document import REDACTED


def environment_of(settings: HubSettings) -> dict[str, Any]:
    """Returns the settings by name. Secrets, and values that may contain one, are redacted."""
    return _members(settings)


def _members(settings: Any) -> dict[str, Any]:
    return {
        field.name: _shown(field.name, getattr(settings, field.name)) for field in fields(settings)
    }


def _shown(name: str, value: Any) -> Any:
    if name.endswith("_secret") or name in ("key_file", "egress_proxy"):
        return REDACTED if value else ""
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [str(one) for one in value]
    return _members(value) if is_dataclass(value) else value
