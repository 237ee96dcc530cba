"""Spans for OpenTelemetry, if its variables ask for them and its package is installed.

`OTEL_TRACES_EXPORTER` is `otlp` or `console`; where only an endpoint is given it is `otlp`. All
other variables (`OTEL_EXPORTER_OTLP_*`, `OTEL_TRACES_SAMPLER`, `OTEL_RESOURCE_ATTRIBUTES` ...) are
read by OpenTelemetry itself. Without any of them nothing of it is imported.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ..core import VERSION
from ..core.errors import ConfigError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

    from ..hub.spans import Spans

EXPORTER: Final = "OTEL_TRACES_EXPORTER"
ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
DISABLED: Final = "OTEL_SDK_DISABLED"
_PACKAGES: Final = {
    "otlp": "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "console": "opentelemetry.sdk.trace.export",
}


def exporter_of(environment: Mapping[str, str]) -> str | None:
    """Returns the exporter that the variables ask for. Raises `ConfigError` for another than
    `otlp`, `console` and `none`."""
    given = environment.get(EXPORTER, "").strip()
    if environment.get(DISABLED, "").strip().lower() == "true" or given == "none":
        return None
    if not given:
        return "otlp" if any(environment.get(name) for name in ENDPOINTS) else None
    if given not in _PACKAGES:
        raise ConfigError(f"{EXPORTER} is '{given}', it can be otlp, console or none")
    return given


class Telemetry:
    """The spans of a server, from its start to its end."""

    def __init__(self, provider: TracerProvider) -> None:
        from ..hub.spans import Spans

        self.spans: Spans = Spans(provider)
        self._provider = provider

    async def stop(self) -> None:
        """Exports what waits."""
        await asyncio.to_thread(self._provider.shutdown)


def start_telemetry() -> Telemetry | None:
    """Returns None unless the variables ask for spans. Raises `ConfigError`, also without the
    package that they need."""
    name = exporter_of(os.environ)
    if name is None:
        return None
    if not _is_installed(_PACKAGES[name]):
        raise ConfigError(
            f"the environment asks for spans ({EXPORTER} or {ENDPOINTS[0]}), and OpenTelemetry is "
            f"not installed: pip install 'warrenmq[otel]', or set {EXPORTER}=none"
        )
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    own = {SERVICE_NAME: os.environ.get("OTEL_SERVICE_NAME", "warren"), SERVICE_VERSION: VERSION}
    provider = TracerProvider(resource=Resource.create(own), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(_exporter(name)))
    return Telemetry(provider)


def _exporter(name: str) -> SpanExporter:
    if name == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter(formatter=lambda span: span.to_json(indent=None) + "\n")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
