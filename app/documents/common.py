"""Documents that belong to no part alone, and types that several of them use."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Kind = Literal["exchange", "queue"]
Letter = Annotated[Literal["x", "q"], Meta(description="An exchange or a queue.")]
Table = dict[str, Any]


class Problem(TypedDict):
    """A problem document (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    field: NotRequired[str]
    value: NotRequired[str]
    limit: NotRequired[str]
    first: NotRequired[Annotated[int, Meta(description="The first offset of a stream.")]]
    next: NotRequired[
        Annotated[int, Meta(description="The offset after the last message of a stream.")]
    ]
    incarnation: NotRequired[str]
    unreadable: NotRequired[
        Annotated[list[int], Meta(description="The first and last of damaged offsets.")]
    ]
    manifests: NotRequired[
        Annotated[list[str], Meta(description="Where archives with the message are.")]
    ]
    feed: NotRequired[Annotated[str, Meta(description="The feed that is registered already.")]]
    candidates: NotRequired[
        Annotated[list[Candidate], Meta(description="The feeds that a page names.")]
    ]


class DocumentLinks(TypedDict):
    """The addresses of the documents of a feed or output."""

    atom: str
    rss: str
    json: str


class Candidate(TypedDict):
    url: str
    title: str
    type: str


class Resource(TypedDict):
    vhost: str
    resource_type: Kind
    resource_name: str


class Paged(TypedDict):
    """A listing; it has the keys of paging if a page was requested."""

    page: NotRequired[int]
    page_size: NotRequired[int]
    page_count: NotRequired[int]
    filtered_count: NotRequired[int]


class Liveness(TypedDict):
    status: Literal["ok"]


class Readiness(TypedDict):
    status: Literal["ok", "unavailable"]
    warnings: list[str]


class Check(TypedDict):
    status: Literal["ok", "failed"]
    reason: NotRequired[str]


class Quarantine(TypedDict):
    messages: list[Table]
    definitions: list[Any]
    unreadable: list[Table]
    files: list[Table]


class Snapshot(TypedDict):
    id: str
    made_at: float
    version: str
    database: str
    directory: str


class LogLevel(TypedDict):
    area: str
    level: str
