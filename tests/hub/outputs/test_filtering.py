"""Items fulfil the filters of outputs or not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from warrenmq.hub.formats.model import Author, Item
from warrenmq.hub.outputs.definition import read_definition
from warrenmq.hub.outputs.filtering import accepts

NOW_S = datetime(2026, 11, 23, 12, tzinfo=UTC).timestamp()
ITEM = Item(
    id="urn:1",
    title="Straße gesperrt",
    summary="Nach dem Sturm",
    content_html="<p>Die <b>A 7</b> bei Ulm&shy;</p><p>ist zu.</p>",
    tags=["Verkehr", "Süden"],
    authors=[Author(name="Eva Roth")],
    language="de-CH",
    date_published="2026-11-23T11:00:00Z",
)


@pytest.mark.parametrize(
    ("given", "is_taken"),
    [
        ({}, True),
        ({"words": {"any": ["STRASSE"]}}, True),
        ({"words": {"any": ["gesperr", "Strass"]}}, False),
        ({"words": {"any": ["die a 7"]}}, True),
        ({"words": {"any": ["zu die"]}}, False),
        ({"words": {"all": ["sturm", "a 7"]}}, True),
        ({"words": {"all": ["sturm", "schnee"]}}, False),
        ({"words": {"none": ["b"]}}, True),
        ({"words": {"none": ["Sturm"]}}, False),
        ({"words": {"any": [], "all": [], "none": []}}, True),
        ({"categories": {"any": ["verkehr", "sport"]}}, True),
        ({"categories": {"all": ["verkehr", "sport"]}}, False),
        ({"categories": {"none": ["SÜDEN"]}}, False),
        ({"authors": {"any": ["eva roth"]}}, True),
        ({"authors": {"any": ["eva"]}}, False),
        ({"languages": {"any": ["de"]}}, True),
        ({"languages": {"any": ["d", "en"]}}, False),
        ({"max_age_s": 3600}, True),
        ({"max_age_s": 3599}, False),
        ({"words": {"any": ["sturm"]}, "max_age_s": 1}, False),
    ],
)
def test_filter(given: dict[str, Any], is_taken: bool) -> None:
    definition = read_definition({"sources": [{"feed": "a"}], "filter": given})
    assert accepts(definition.filter, ITEM, NOW_S) is is_taken


@pytest.mark.parametrize("date", ["", "yesterday"])
def test_an_item_without_a_date_is_new(date: str) -> None:
    wanted = read_definition({"sources": [{"feed": "a"}], "filter": {"max_age_s": 1}}).filter
    assert accepts(wanted, Item(id="1", date_published=date), NOW_S)
