"""Definitions are read strictly; errors name the member, its value and the limit."""

from __future__ import annotations

from typing import Any

import pytest

from warrenmq.hub.errors import BadRequest
from warrenmq.hub.outputs.definition import Definition, Filter, OutputSource, read_definition

BBC = {"feed": "bbc"}


@pytest.mark.parametrize(
    ("given", "field", "value", "limit"),
    [
        ({}, "the body", None, None),
        ({"sources": []}, "sources", "[]", "list of length >= 1"),
        ({"sources": [{"feed": "b c"}]}, "sources[0].feed", "b c", "string matching"),
        ({"sources": [BBC, {**BBC, "stream": "x"}]}, "sources[1]", "feed, stream", "exactly one"),
        ({"sources": [{"feed": "b", "routing_key": "#"}]}, "sources[0].routing_key", "#", None),
        ({"sources": [{"stream": "é" * 128}]}, "sources[0].stream", "é" * 128, "255 bytes"),
        ({"filter": {"max_age_s": 0}}, "filter.max_age_s", "0", "whole number >= 1"),
        ({"filter": {"words": {"any": ["x", ""]}}}, "filter.words.any[1]", "", "length >= 1"),
        ({"filter": {"word": {}}}, "filter", None, None),
        ({"transform": [{}]}, "transform[0]", "", "exactly one of cut"),
        ({"transform": [{"cut": "x"}]}, "transform[0].cut", "x", "headline and first paragraph"),
        ({"transform": [{"remove": ["url"]}]}, "transform[0].remove[0]", "url", "attachments"),
        ({"transform": [{"title": "{x}"}]}, "transform[0].title", "{x}", "{feed}, {title}"),
        ({"transform": [{"rename": {}}]}, "transform[0].rename", None, "categories, authors"),
        ({"visibility": "all"}, "visibility", "all", "public, token"),
        ({"title": "a\0b"}, "the body", None, None),
        ({"title": "\ud800"}, "the body", None, None),
    ],
)
def test_bad_definitions_are_refused(
    given: dict[str, Any], field: str, value: str | None, limit: str | None
) -> None:
    whole = given if "sources" in given or not given else {"sources": [BBC], **given}
    with pytest.raises(BadRequest) as refused:
        read_definition(whole)
    assert (refused.value.field, refused.value.value) == (field, value)
    assert (limit or "") in (refused.value.limit or "")


def test_missing_members_have_their_defaults() -> None:
    assert read_definition({"sources": [BBC]}) == Definition((OutputSource(feed="bbc"),))
    assert read_definition({"sources": [BBC]}).filter == Filter()
