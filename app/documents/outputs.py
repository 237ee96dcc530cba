"""The documents of outputs and the tokens of their readers."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from .common import DocumentLinks, Paged, Time


class OutputSource(TypedDict):
    feed: NotRequired[str]
    exchange: NotRequired[str]
    routing_key: NotRequired[str]
    stream: NotRequired[str]
    problem: str | None


class Output(TypedDict):
    name: str
    vhost: str
    owner: str
    title: str
    description: str
    visibility: Literal["public", "token"]
    sources: list[OutputSource]
    filter: dict[str, Any]
    transform: list[dict[str, Any]]
    documents: DocumentLinks
    notice: str
    made_at: Time
    changed_at: Time


class OutputPage(Paged):
    items: list[Output]
    item_count: int
    total_count: int


class OutputToken(TypedDict):
    id: str
    name: str
    made_at: Time


class MadeOutputToken(OutputToken):
    token: str
    documents: DocumentLinks
