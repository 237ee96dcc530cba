"""Batches and streams as Spark asks for them, without Spark: a server of one stream is enough."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
    Not,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows

from pyspark_warren import DefaultSource
from warrenmq.hub.pipeline.errors import (
    DataLossError,
    OptionError,
    PipelineError,
    ReadError,
    UnavailableError,
)
from warrenmq.hub.pipeline.planner import StreamPartition, split
from warrenmq.hub.pipeline.reader import StreamBatchReader
from warrenmq.hub.pipeline.schema import ARROW_SCHEMA
from warrenmq.hub.pipeline.source import SCHEMA
from warrenmq.hub.pipeline.stream_reader import BATCH_BYTES, MicroBatchReader

from .chunks import STREAM
from .fake_server import FakeServer

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def batch_reader(server: FakeServer, **options: str) -> StreamBatchReader:
    return DefaultSource(server.options | options).reader(SCHEMA)


Follow = Callable[..., MicroBatchReader]


@pytest.fixture
def follow(server: FakeServer) -> Iterator[Follow]:
    with ExitStack() as stack:

        def made(**options: str) -> MicroBatchReader:
            stream = DefaultSource(server.options | options).streamReader(SCHEMA)
            stack.callback(stream.stop)
            return stream

        yield made


def read(
    reader: StreamBatchReader | MicroBatchReader, planned: Iterable[InputPartition]
) -> list[int]:
    """The offsets that tasks read, the reader having travelled to them."""
    found = []
    for partition in pickle.loads(pickle.dumps(list(planned))):
        for rows in pickle.loads(pickle.dumps(reader)).read(partition):
            found += rows.column("offset").to_pylist()
    return found


def at(offset: int, incarnation: str = "one") -> dict[str, Any]:
    return {STREAM: offset, "incarnation": incarnation}


def test_arrow_has_the_types_that_spark_compares() -> None:
    assert to_arrow_schema(SCHEMA, timezone="UTC").equals(ARROW_SCHEMA)


@given(
    st.integers(0, 2**40),
    st.integers(-5, 2**20),
    st.integers(0, 2**32),
    st.none() | st.integers(1, 9),
)
def test_partitions_cover_all_offsets_without_overlap(
    start: int, rows: int, size: int, least: int | None
) -> None:
    parts = split(start, start + rows, "one", size, least)
    bounds = [start, *(part.end for part in parts)]
    assert [part.start for part in parts] == bounds[:-1]
    assert all(part.start < part.end for part in parts)
    assert bounds[-1] == start + max(0, rows)
    assert len(parts) >= min(max(0, rows), max(least or 1, size // 2**26))


# -- batches


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, range(50)),
        ({"startingOffset": "7", "endingOffset": "33", "minPartitions": "3"}, range(7, 33)),
        ({"startingOffset": "latest"}, range(0)),
        ({"startingOffset": "2026-01-31T12:00:00Z"}, range(20, 50)),
        ({"startingOffset": "50", "endingOffset": "earliest"}, range(0)),
    ],
)
def test_a_batch_has_the_messages_between_its_boundaries(
    server: FakeServer, options: dict[str, str], wanted: range
) -> None:
    reader = batch_reader(server, **options)
    assert read(reader, reader.partitions()) == [*wanted]


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ([GreaterThan(("offset",), 9), LessThan(("offset",), 20)], (9, 21)),
        ([GreaterThanOrEqual(("offset",), 9), LessThanOrEqual(("offset",), 20)], (9, 21)),
        ([EqualTo(("offset",), 7)], (7, 8)),
        ([In(("offset",), (9, 7, None))], (7, 10)),
        ([GreaterThan(("timestamp",), NOON)], (20, 50)),
        ([LessThan(("timestamp",), NOON.replace(tzinfo=None))], (0, 20)),
        ([LessThan(("timestamp",), datetime(9999, 12, 31, 23, 59, 59, 999_999))], (0, 50)),
        ([Not(EqualTo(("offset",), 7)), EqualTo(("priority",), 3)], (0, 50)),
    ],
)
def test_filters_bound_the_requested_offsets(
    server: FakeServer, filters: list[Filter], wanted: tuple[int, int]
) -> None:
    reader = batch_reader(server, minPartitions="1")
    assert list(reader.pushFilters(filters)) == filters
    assert reader.partitions() == [StreamPartition(*wanted, "one")]


def test_filters_of_times_bound_nothing_on_rabbitmq(server: FakeServer) -> None:
    """Which seeks by times of its own."""
    server.bytes = None
    reader = batch_reader(server, minPartitions="1")
    reader.pushFilters([GreaterThan(("timestamp",), NOON), LessThan(("timestamp",), NOON)])
    assert reader.partitions() == [StreamPartition(0, 50, "one")]


@pytest.mark.parametrize("name", ["startingOffset", "endingOffset"])
def test_boundaries_beyond_the_stream_are_refused(server: FakeServer, name: str) -> None:
    with pytest.raises(OptionError, match=f"{name}=51: .* ends at offset 50"):
        batch_reader(server, **{name: "51"}).partitions()


def test_messages_dropped_before_planning_are_an_error_or_skipped(server: FakeServer) -> None:
    server.first = 20
    with pytest.raises(DataLossError, match="begins at offset 20, so those from 5 on are lost"):
        batch_reader(server, startingOffset="5").partitions()
    lossy = batch_reader(server, startingOffset="5", failOnDataLoss="false")
    assert read(lossy, lossy.partitions()) == [*range(20, 50)]


def test_messages_dropped_after_planning_are_an_error_or_skipped(server: FakeServer) -> None:
    reader, lossy = batch_reader(server), batch_reader(server, failOnDataLoss="false")
    planned = reader.partitions()
    server.first = 35
    with pytest.raises(DataLossError, match="offset 0 is gone, the first is 35"):
        read(reader, planned)
    assert read(lossy, planned) == [*range(35, 50)]


def test_messages_that_are_missing(server: FakeServer) -> None:
    server.left_out = [20]
    reader, lossy = batch_reader(server), batch_reader(server, failOnDataLoss="false")
    with pytest.raises(DataLossError, match="messages 20 to 29 are missing in stream 'prices'"):
        read(reader, reader.partitions())
    assert read(lossy, lossy.partitions()) == [*range(20), *range(30, 50)]


def test_a_stream_that_became_shorter(server: FakeServer) -> None:
    with pytest.raises(DataLossError, match="ends at offset 50, and messages up to 60 were there"):
        read(batch_reader(server), [StreamPartition(40, 60, "one")])


def test_a_failure_that_passes_is_not_seen(server: FakeServer) -> None:
    reader = batch_reader(server)
    server.failures = [503, 429]
    planned = reader.partitions()
    server.failures = [502]
    assert read(reader, planned) == [*range(50)]


def test_a_closed_connection_is_replaced_silently(
    server: FakeServer, follow: Follow, caplog: pytest.LogCaptureFixture
) -> None:
    server.closing = True
    stream = follow()
    assert stream.initialOffset() == at(0)
    assert stream.latestOffset(at(0), ReadMaxBytes(3000)) == at(3)
    assert caplog.records == []


def test_a_server_that_is_gone(server: FakeServer) -> None:
    server.stop()
    with pytest.raises(UnavailableError, match="can't be reached: .*; start the server, or check"):
        batch_reader(server).partitions()


def test_a_server_that_is_another(server: FakeServer) -> None:
    page: tuple[int, dict[str, str], bytes] = (200, {}, b"<p>Hello</p>")
    reader = batch_reader(server)
    planned = reader.partitions()
    server.answer = lambda path: page  # type: ignore[method-assign]
    for ask in (reader.partitions, lambda: read(reader, planned)):
        with pytest.raises(ReadError, match="'prices' .*: what has answered there is no Warren"):
            ask()


@pytest.mark.parametrize("status", [401, 403, 404, 409, 500])
def test_a_refusal_names_stream_server_and_reason(server: FakeServer, status: int) -> None:
    server.failures = [status]
    with pytest.raises(ReadError, match=f"stream 'prices' in vhost '/' at .*: {status} not now"):
        batch_reader(server).partitions()
    assert len(server.paths) == 1


def test_requests_carry_credentials_virtual_host_and_source(server: FakeServer) -> None:
    batch_reader(server).partitions()
    assert server.authorization == "Basic Z3Vlc3Q6Z3Vlc3Q="
    reader = batch_reader(server, user="u", password="p", vhost="a/b", source="exchange")
    with pytest.raises(PipelineError):
        reader.partitions()
    assert server.authorization == "Basic dTpw"
    assert server.paths[-1] == "/streams/a%2Fb/x/prices/offsets?"
    reader = batch_reader(server, url=f"{server.options['url']}/warren/", source="queue")
    with pytest.raises(PipelineError):
        reader.partitions()
    assert server.paths[-1] == "/warren/streams/%2F/q/prices/offsets?", "behind a proxy"


def test_a_token_is_an_option_or_in_the_environment_of_the_driver(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch_reader(server, token="given").partitions()
    assert server.authorization == "Bearer given"
    monkeypatch.setenv("WARREN_TOKEN", "exported")
    reader = batch_reader(server)
    monkeypatch.delenv("WARREN_TOKEN")
    reader.partitions()
    assert server.authorization == "Bearer exported"
    monkeypatch.setenv("WARREN_TOKEN", "exported")
    batch_reader(server, user="guest", password="guest").partitions()
    assert server.authorization == "Basic Z3Vlc3Q6Z3Vlc3Q="


# -- streams


@pytest.mark.parametrize(
    ("limit", "wanted"),
    [
        (ReadAllAvailable(), 50),
        (ReadMaxRows(7), 17),
        (ReadMaxRows(70), 50),
        (ReadMaxBytes(3000), 13),
    ],
)
def test_a_micro_batch_has_as_much_as_it_may(follow: Follow, limit: ReadLimit, wanted: int) -> None:
    stream = follow()
    assert stream.latestOffset(at(10), limit) == at(wanted)
    assert stream.reportLatestOffset() == at(50)
    assert read(stream, stream.partitions(at(10), at(wanted))) == [*range(10, wanted)]


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, ReadMaxBytes(BATCH_BYTES)),
        ({"maxRowsPerTrigger": "5"}, ReadMaxRows(5)),
        ({"maxBytesPerTrigger": "5"}, ReadMaxBytes(5)),
    ],
)
def test_the_limit_is_that_of_the_options(
    follow: Follow, options: dict[str, str], limit: ReadLimit
) -> None:
    assert follow(**options).getDefaultReadLimit() == limit


@pytest.mark.parametrize(("starting", "begin"), [("earliest", 0), ("latest", 50), ("7", 7)])
def test_a_query_begins_at_the_starting_offset(follow: Follow, starting: str, begin: int) -> None:
    assert follow(startingOffset=starting).initialOffset() == at(begin)


def test_available_now_ends_where_the_stream_ended(server: FakeServer, follow: Follow) -> None:
    stream = follow()
    stream.prepareForTriggerAvailableNow()
    server.chunks[50] = server.chunks[0]
    assert stream.latestOffset(at(0), ReadAllAvailable()) == at(50)
    assert stream.latestOffset(at(50), ReadAllAvailable()) == at(50)


def test_a_stream_that_was_made_again(server: FakeServer, follow: Follow) -> None:
    server.incarnation = "two"
    with pytest.raises(DataLossError, match="incarnation one in the checkpoint, now two"):
        follow().latestOffset(at(30), ReadAllAvailable())
    lossy = follow(failOnDataLoss="false")
    end = lossy.latestOffset(at(30), ReadMaxRows(20))
    assert end == at(20, "two")
    assert read(lossy, lossy.partitions(at(30), end)) == [*range(20)]


def test_a_stream_that_was_made_again_while_it_was_read(server: FakeServer) -> None:
    reader, lossy = batch_reader(server), batch_reader(server, failOnDataLoss="false")
    planned = reader.partitions()
    server.incarnation = "two"
    with pytest.raises(DataLossError, match="incarnation one is gone"):
        read(reader, planned)
    assert read(lossy, planned) == []


@pytest.mark.parametrize(
    ("start", "first", "reason"),
    [
        (at(5), 20, "begins at offset 20, so those from 5 on are lost"),
        (at(51), 0, "ends at offset 50, the checkpoint is at 51"),
        ({"other": 5, "incarnation": "one"}, 0, "the checkpoint is of stream 'other'"),
    ],
)
def test_checkpoints_that_do_not_fit(
    server: FakeServer, follow: Follow, start: dict[str, Any], first: int, reason: str
) -> None:
    server.first = first
    with pytest.raises(PipelineError, match=reason):
        follow().latestOffset(start, ReadAllAvailable())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"endingOffset": "latest"}, "endingOffset is for spark.read alone"),
        ({"stream": "incarnation"}, "can be read with spark.read alone"),
        ({"maxrows": "1"}, "did you mean 'maxRowsPerTrigger'"),
    ],
)
def test_options_of_batches_alone(follow: Follow, options: dict[str, str], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        follow(**options).getDefaultReadLimit()
