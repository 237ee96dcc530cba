"""The hub's settings in tests."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from warrenmq.app.configuration.settings import Settings
from warrenmq.hub.settings import HubSettings


def hub_settings(**changed: Any) -> HubSettings:
    """The defaults of fields and, for those without, of settings, with changes."""
    defaults = Settings()
    given = {
        field.name: getattr(defaults, field.name)
        for field in fields(HubSettings)
        if field.default is MISSING and field.default_factory is MISSING
    }
    return HubSettings(**given | changed)
