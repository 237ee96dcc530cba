"""Options are read, and what they can't be is said."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime

import pytest

from warrenmq.hub.pipeline.errors import OptionError, SchemaError
from warrenmq.hub.pipeline.options import READ_OPTIONS, read_options
from warrenmq.hub.pipeline.schema import arrow_schema

NEEDED = {"url": "http://localhost:15672/", "stream": "prices"}


def test_defaults() -> None:
    found = read_options(NEEDED)
    assert (found.vhost, found.starting, found.ending) == ("/", "earliest", "latest")
    assert (found.server.user, found.server.password) == ("guest", "guest")
    assert found.fail_on_data_loss


def test_names_of_options_are_case_insensitive() -> None:
    given = {name.lower(): "1" for name in READ_OPTIONS if name.startswith("min")}
    assert read_options(NEEDED | given).min_partitions == 1


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("LATEST", "latest"),
        ("17", 17),
        ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
    ],
)
def test_where_reading_begins(value: str, meant: object) -> None:
    assert read_options(NEEDED | {"startingOffset": value}).starting == meant


@pytest.mark.parametrize("name", ["password", "token"])
def test_credentials_are_not_shown(name: str) -> None:
    found = read_options(NEEDED | {name: "secret"})
    assert pickle.loads(pickle.dumps(found)) == found
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"url": ""}, "option 'url' is missing"),
        ({"token": "secret", "user": "u"}, "token beside user or password: give one"),
        ({"token": "secret\n"}, "token has what is no part of one"),
        ({"tokens": "secret"}, "option 'tokens' is unknown; did you mean 'token'"),
        ({"subscribe": "news"}, "option 'subscribe' is unknown; did you mean 'stream'? There are"),
        ({"path": "/"}, "option 'path' is unknown. There are url, vhost"),
        ({"url": "ftp://a:secret@h"}, "url='ftp://h': give http://HOST:PORT"),
        ({"url": "http://a:secret@h"}, "user and password are options of their own"),
        ({"url": "http://h:99999"}, "url='http://h:99999': give http://HOST:PORT"),
        ({"stream": ""}, "option 'stream' is missing: add .option"),
        ({"startingOfset": "1"}, "'startingofset' is unknown; did you mean 'startingOffset'"),
        ({"startingOffset": "first"}, "startingOffset='first': give earliest, latest, an offset"),
        ({"endingOffset": "-1"}, "endingOffset='-1': give"),
        ({"maxRowsPerTrigger": "0"}, "maxRowsPerTrigger='0': give a whole number of 1 or more"),
        ({"maxBytesPerTrigger": "8m"}, "maxBytesPerTrigger='8m': give a whole number"),
        ({"maxRowsPerTrigger": "1", "maxBytesPerTrigger": "2"}, "Spark takes one"),
        ({"failOnDataLoss": "no"}, "failOnDataLoss='no': give true or false"),
        ({"source": "topic"}, "source='topic': give queue or exchange"),
        ({"minPartitions": "two"}, "minPartitions='two': give"),
    ],
)
def test_options_that_are_refused(given: dict[str, str], reason: str) -> None:
    with pytest.raises(OptionError) as caught:
        read_options(NEEDED | given)
    assert reason in str(caught.value) and "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"key": "string"}, "column 'key' of the schema: a stream has stream, offset"),
        ({"body": "string"}, "column 'body' of the schema is string, in a stream it is binary"),
    ],
)
def test_schemas_that_are_refused(columns: dict[str, str], reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        arrow_schema(columns)
