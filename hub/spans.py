"""Spans of publishes over HTTP and of deliveries, by OpenTelemetry.

Imported only where spans are wanted, so that its package is needed nowhere else. Names and
attributes are those of OpenTelemetry's semantic conventions for messaging and HTTP. Callbacks may
be credentials: of their URLs only host and port are recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from opentelemetry.context import Context
from opentelemetry.trace import (
    Span,
    SpanKind,
    Status,
    StatusCode,
    TracerProvider,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from ..core import VERSION
from ..core.message.model import Properties, Table
from .sender.port import Answer, Answered
from .trace_context import NAMES, trace_context

_NO_HEADERS: Final[Table] = {}
_propagator = TraceContextTextMapPropagator()


class Spans:
    """Makes the spans of one server."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("warrenmq", VERSION)

    @contextmanager
    def publishing(
        self, vhost: str, destination: str, routing_key: str, properties: Properties
    ) -> Iterator[Properties]:
        """A span while a publish is in progress; gives the properties with it as their trace
        context. An exception is recorded."""
        headers = properties.headers or _NO_HEADERS
        with self._tracer.start_as_current_span(
            f"send {destination or 'amq.default'}",
            _context(headers),
            SpanKind.PRODUCER,
            {
                "messaging.system": "rabbitmq",
                "messaging.operation.type": "send",
                "messaging.destination.name": destination,
                "messaging.rabbitmq.destination.routing_key": routing_key,
                "warren.vhost": vhost,
            },
        ) as span:
            own = _headers_of(span)
            yield replace(properties, headers={**_others(headers), **own}) if own else properties

    def delivering(
        self,
        source: str,
        webhook_id: str,
        failures: int,
        url: str,
        headers: dict[str, str],
        answered: Answered,
    ) -> Answered:
        """Begins the span of an attempt, which becomes the trace context in the headers of its
        request; returns what ends it with the answer, before `answered` is called."""
        parts = urlsplit(url)
        span = self._tracer.start_span(
            f"deliver {source}",
            _context(headers),
            SpanKind.CLIENT,
            {
                "messaging.system": "rabbitmq",
                "messaging.destination.name": source,
                "messaging.message.id": webhook_id,
                "http.request.method": "POST",
                "http.request.resend_count": failures,
                "server.address": parts.hostname or "",
                "server.port": parts.port or (443 if parts.scheme == "https" else 80),
            },
        )
        own = _headers_of(span)
        if own:
            for name in NAMES:
                headers.pop(name, None)
            headers.update(own)

        def ended(answer: Answer | Exception) -> None:
            _end(span, answer)
            answered(answer)

        return ended


def _context(headers: Mapping[str, object]) -> Context:
    """Returns the context that a span continues: an empty one without a valid trace context."""
    return _propagator.extract(trace_context(headers), Context())


def _headers_of(span: Span) -> dict[str, str]:
    """Returns the trace context of a span; empty if nothing is recorded anywhere."""
    carrier: dict[str, str] = {}
    _propagator.inject(carrier, set_span_in_context(span, Context()))
    return carrier


def _others(headers: Table) -> Table:
    return {name: value for name, value in headers.items() if name not in NAMES}


def _end(span: Span, answer: Answer | Exception) -> None:
    if isinstance(answer, Answer):
        span.set_attribute("http.response.status_code", answer.status)
        if not 200 <= answer.status < 300:
            span.set_status(Status(StatusCode.ERROR, f"HTTP {answer.status}"))
    else:
        span.set_attribute("error.type", type(answer).__qualname__)
        span.set_status(Status(StatusCode.ERROR))
    span.end()
