"""Property tests of the core: enough examples for each push, and nothing about time."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "core", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("core")
