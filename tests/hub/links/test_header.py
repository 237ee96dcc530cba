from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from warrenmq.hub.links.header import read_link_fields


def hubs(*fields: str) -> list[str]:
    return [reference for _, reference in read_link_fields(fields).hubs]


def test_the_forms_of_a_link() -> None:
    assert hubs("<a>;rel=hub", ' < b > ; REL = "x  HUB" ') == ["a", "b"]
    assert hubs("<a>;rel=hub,<b>;rel=hub, ,<c>; ;rel=hub;") == ["a", "b", "c"]
    assert hubs('<a>;title="x, <b>;rel=hub \\" \\\\";rel=hub') == ["a"]


def test_the_first_relation_counts() -> None:
    assert hubs("<a>;rel=next;rel=hub", "<b>;rel;rel=hub", "<c>") == []


def test_a_fault_ends_the_field() -> None:
    assert hubs("<a>;rel=hub, b;rel=hub, <c>;rel=hub", "<d>;rel=hub") == ["a", "d"]


@given(st.lists(st.text('<>;,="\\ arel hub', max_size=40)))
def test_any_text_is_parsed_without_an_error(fields: list[str]) -> None:
    read_link_fields(fields)
