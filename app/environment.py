"""The hub's settings, as `/api/hub/environment` shows them."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from ..hub.settings import HubSettings
from ..hub.workers.limits import Limits
from .subscription_json import REDACTED


def environment_of(settings: HubSettings) -> dict[str, Any]:
    """Returns the settings by name. Secrets, and values that may contain one, are redacted."""
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
    return asdict(value) if isinstance(value, Limits) else value
