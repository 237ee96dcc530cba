"""Spans, by the real SDK of OpenTelemetry."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs opentelemetry-sdk")

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from tests.support.http import Callback
from tests.support.server import WarrenServer
from warrenmq.app.telemetry import exporter_of
from warrenmq.core.errors import ConfigError
from warrenmq.core.message.model import Properties
from warrenmq.hub.sender.port import Answer, TimedOut
from warrenmq.hub.spans import Spans

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
URL = "https://ex.org/secret?token=x"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Spans:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Spans(provider)


def attempt(spans: Spans, headers: dict[str, str], answer: Answer | Exception) -> None:
    answers: list[Answer | Exception] = []
    spans.delivering("news", "msg_1", 2, URL, headers, answers.append)(answer)
    assert answers == [answer]


def ids(span: ReadableSpan) -> tuple[str, str]:
    return f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}"


def test_a_message_has_the_context_of_its_publish(
    spans: Spans, exporter: InMemorySpanExporter
) -> None:
    given = Properties(headers={"n": 1, "traceparent": TRACEPARENT, "tracestate": "a=1"})
    with spans.publishing("/", "news", "k", given) as properties:
        pass
    (span,) = exporter.get_finished_spans()
    assert (span.name, span.kind.name) == ("send news", "PRODUCER")
    assert span.parent is not None and f"{span.parent.span_id:016x}" == PARENT
    trace, own = ids(span)
    assert trace == TRACE
    assert properties.headers == {
        "n": 1, "traceparent": f"00-{TRACE}-{own}-01", "tracestate": "a=1",
    }  # fmt: skip


def test_a_refused_publish_is_an_error(spans: Spans, exporter: InMemorySpanExporter) -> None:
    with pytest.raises(ValueError, match="full"), spans.publishing("/", "", "k", Properties()):
        raise ValueError("full")
    (span,) = exporter.get_finished_spans()
    assert (span.name, span.status.status_code.name) == ("send amq.default", "ERROR")


@pytest.mark.parametrize(
    ("answer", "status", "expected"),
    [
        (Answer(204), "UNSET", {"http.response.status_code": 204}),
        (Answer(500), "ERROR", {"http.response.status_code": 500}),
        (TimedOut("slow"), "ERROR", {"error.type": "TimedOut"}),
    ],
)
def test_an_attempt(
    spans: Spans,
    exporter: InMemorySpanExporter,
    answer: Answer | Exception,
    status: str,
    expected: dict[str, Any],
) -> None:
    headers = {"traceparent": TRACEPARENT, "webhook-id": "msg_1"}
    attempt(spans, headers, answer)
    (span,) = exporter.get_finished_spans()
    assert (span.name, span.kind.name, span.status.status_code.name) == (
        "deliver news", "CLIENT", status,
    )  # fmt: skip
    assert headers == {"traceparent": f"00-{TRACE}-{ids(span)[1]}-01", "webhook-id": "msg_1"}
    attributes = dict(span.attributes or {})
    assert expected.items() <= attributes.items()
    assert (attributes["server.address"], attributes["server.port"]) == ("ex.org", 443)
    assert attributes["http.request.resend_count"] == 2
    assert "secret" not in str(attributes)


def test_an_unsampled_trace_is_passed_on_with_its_flag(exporter: InMemorySpanExporter) -> None:
    provider = TracerProvider(sampler=ALWAYS_OFF)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    headers = {"traceparent": TRACEPARENT}
    attempt(Spans(provider), headers, Answer(204))
    assert exporter.get_finished_spans() == ()
    trace, flags = headers["traceparent"].split("-")[1::2]
    assert (trace, flags) == (TRACE, "00")


def test_from_a_publish_to_its_callback(callback: Callback) -> None:
    """A trace of three: the publisher's span, the publish, and two attempts below it."""
    callback.script(500)
    with WarrenServer(env={"OTEL_TRACES_EXPORTER": "console"}) as server:
        form = {"hub.mode": "subscribe", "hub.topic": "#", "hub.callback": callback.url}
        with httpx.Client(base_url=server.http_url, auth=("guest", "guest"), timeout=60) as http:
            http.post("/subscribe/x/amq.topic", data=form).raise_for_status()
            headers = {"traceparent": TRACEPARENT}
            assert http.post("/endpoint/x/amq.topic", headers=headers).status_code == 202
        arrived = callback.wait(2, 60)
        server.stop()
        lines = [line for line in server.output().splitlines() if line.startswith("{")]
    found = {one["context"]["span_id"]: one for one in map(json.loads, lines)}
    assert {one["context"]["trace_id"] for one in found.values()} == {f"0x{TRACE}"}
    (sent,) = [one for one in found.values() if one["name"] == "send amq.topic"]
    assert sent["parent_id"] == f"0x{PARENT}"
    attempts = [one for one in found.values() if one["name"] == "deliver amq.topic"]
    assert [one["parent_id"] for one in attempts] == [sent["context"]["span_id"]] * 2
    seen = [request.headers["traceparent"].split("-")[2] for request in arrived]
    assert [f"0x{one}" for one in seen] == [one["context"]["span_id"] for one in attempts]
    assert [one["attributes"]["http.response.status_code"] for one in attempts] == [500, 200]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
        ({"OTEL_TRACES_EXPORTER": "none"}, None),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"}, None),
    ],
)
def test_when_spans_are_recorded(environment: dict[str, str], expected: str | None) -> None:
    assert exporter_of(environment) == expected


def test_an_unknown_exporter_is_refused() -> None:
    with pytest.raises(ConfigError, match="it can be otlp, console or none"):
        exporter_of({"OTEL_TRACES_EXPORTER": "zipkin"})
