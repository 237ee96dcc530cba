"""Lists of RabbitMQ's paths: filtered by name, sorted, cut to a page, and reduced to columns.

There may be 100,000 objects: they are filtered and sorted in slices, and only those of the page are
described. A list without a page is sent as it is made.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice
from typing import Any, Final, Generic, TypeVar

import msgspec
from starlette.datastructures import QueryParams
from starlette.responses import Response, StreamingResponse

from ....core.auth import AuthError
from ....core.auth.patterns import linear_matcher
from ....core.counted import counted
from ...documents import objects
from ...problems import Problem
from ...responses.time_slice import TimeSlice
from .call import NO_STORE, Call
from .columns import Document, columns_of, look_up, reduced
from .required_tags import RequiredTag
from .route import Handler, Operation
from .view import STATISTICS_QUERY

Row = TypeVar("Row")

LIST_QUERY: Final = (
    "page", "page_size", "name", "use_regex", "sort", "sort_reverse", "columns", "pagination",
)  # fmt: skip
"""Query parameters of every list; others are ignored, as in RabbitMQ."""
PAGE_SIZE: Final = 100
PAGE_SIZE_MAX: Final = 500
_PORTION: Final = 256
"""Rows between two looks at the clock, where each takes about a microsecond."""
_MEDIA_TYPE: Final = "application/json"


@dataclass(frozen=True)
class ListSpec(Generic[Row]):
    """The name, order and document of the rows of a list.

    `fields` are those that are known without the whole document, by their name in it; all values of
    one are of the same type, and of `order` too. `orders` are keys for fields whose values are not
    those by which to sort.
    """

    name: Callable[[Row], str]
    order: Callable[[Row], Any]
    describe: Callable[[Row], Document]
    fields: Mapping[str, Callable[[Row], Any]] = field(default_factory=dict)
    orders: Mapping[str, Callable[[Row], Any]] = field(default_factory=dict)

    def value(self, column: str) -> Callable[[Row], Any]:
        """Returns a function that looks up a dotted column; None where it is missing."""
        found = self.fields.get(column)
        if found is not None:
            return found
        path = column.split(".")
        return lambda row: look_up(self.describe(row), path)


async def gathered(rows: Iterable[Row]) -> list[Row]:
    """Returns the rows of a list, which are made in slices."""
    found, iterator, time_slice = list[Row](), iter(rows), TimeSlice()
    while portion := list(islice(iterator, _PORTION)):
        found += portion
        await time_slice.yield_if_over()
    return found


async def released(rows: list[Any]) -> None:
    """Frees rows that were made for a list in slices: all at once takes as long as sorting."""
    time_slice = TimeSlice()
    while rows:
        del rows[-_PORTION:]
        await time_slice.yield_if_over()


class ListQuery:
    """The filter, order, page and columns that a request asks for. Raises `Problem` 400 naming the
    parameter."""

    def __init__(self, query: QueryParams) -> None:
        self.page = _number(query, "page", 1, 2**31) if "page" in query else None
        self.page_size = PAGE_SIZE
        if "page_size" in query:
            self.page_size = _number(query, "page_size", 1, PAGE_SIZE_MAX)
        self.sort = query.get("sort", "")
        self.reverse = query.get("sort_reverse") == "true"
        self.columns = columns_of(query)
        self.matches = _name_filter(query)


def _number(query: QueryParams, key: str, low: int, high: int) -> int:
    found = query[key]
    if not (found.isascii() and found.isdigit() and len(found) < 12 and low <= int(found) <= high):
        raise Problem(400, f"{key} is '{found[:80]}', it has to be a number from {low} to {high}")
    return int(found)


def _name_filter(query: QueryParams) -> Callable[[str], bool] | None:
    wanted = query.get("name", "")
    if not wanted:
        return None
    if query.get("use_regex") != "true":
        return lambda name: wanted in name
    try:
        return linear_matcher(wanted)
    except AuthError as error:
        raise Problem(400, f"name: {error}") from error


def list_of(handler: Handler, tag: RequiredTag, document: Any, *query: str) -> Operation:
    """Returns the operation that lists documents of this type; with `page` they are a page."""
    answers = {200: list[document] | objects.Page[document]}
    return Operation(handler, tag, answers, query=(*LIST_QUERY, *STATISTICS_QUERY, *query))


async def listing(call: Call, rows: Sequence[Row], kind: ListSpec[Row]) -> Response:
    """Returns the rows as a bare list, or as the page that was requested.

    Raises `Problem` 400 for a parameter that can't be used, and for a page behind the last one.
    """
    query, time_slice = ListQuery(call.request.query_params), TimeSlice()
    total = len(rows)
    if query.matches is not None:
        name, matches = kind.name, query.matches
        rows = await filtered(rows, lambda row: matches(name(row)), time_slice)
    found = await _sorted(rows, kind, query, time_slice)
    describe = _described(kind, query.columns)
    if query.page is None:
        return await bare_list(found, describe)
    page_count = -(-len(rows) // query.page_size)
    if query.page > max(1, page_count):
        pages, size = counted(page_count, "page"), counted(query.page_size, "item")
        raise Problem(400, f"page {query.page} is out of range: the list has {pages} of {size}")
    items = []
    for row in found:
        items.append(describe(row))
        await time_slice.yield_if_over()
    document = {
        "filtered_count": len(rows),
        "item_count": len(items),
        "items": items,
        "page": query.page,
        "page_count": page_count,
        "page_size": query.page_size,
        "total_count": total,
    }
    return Response(msgspec.json.encode(document), media_type=_MEDIA_TYPE, headers=NO_STORE)


async def listing_of(call: Call, documents: Sequence[Document], name: str = "name") -> Response:
    """Returns documents that are made already as `listing` does, named by this field, in their
    order."""
    kind = ListSpec[Document](
        lambda document: str(document.get(name, "")),
        lambda document: 0,
        lambda document: document,
    )
    return await listing(call, documents, kind)


async def filtered(
    rows: Sequence[Row], is_wanted: Callable[[Row], bool], time_slice: TimeSlice
) -> list[Row]:
    found: list[Row] = []
    for start in range(0, len(rows), _PORTION):
        found += [row for row in rows[start : start + _PORTION] if is_wanted(row)]
        await time_slice.yield_if_over()
    return found


async def _sorted(
    rows: Sequence[Row], kind: ListSpec[Row], query: ListQuery, time_slice: TimeSlice
) -> list[Row]:
    """Returns the rows of the page, or all, in order: portions are sorted, and merged as far as
    needed."""
    first = 0 if query.page is None else (query.page - 1) * query.page_size
    end = len(rows) if query.page is None else first + query.page_size
    portions: list[list[tuple[Any, int, Row]]] = []
    for start in range(0, len(rows), _PORTION):
        portion = await _keyed(rows[start : start + _PORTION], start, kind, query.sort, time_slice)
        portion.sort(reverse=query.reverse)
        portions.append(portion[:end])
        await time_slice.yield_if_over()
    merged = merge(*portions, reverse=query.reverse)
    found: list[Row] = []
    for at in range(0, end, _PORTION):
        taken = [row for _, _, row in islice(merged, min(_PORTION, end - at))]
        found += taken[max(0, first - at) :]
        await time_slice.yield_if_over()
        if not taken:
            break
    merged.close()
    while portions:  # Freeing them all at once would take as long as sorting.
        portions.pop()
        await time_slice.yield_if_over()
    return found


async def _keyed(
    rows: Sequence[Row], start: int, kind: ListSpec[Row], sort: str, time_slice: TimeSlice
) -> list[tuple[Any, int, Row]]:
    """Returns rows with their keys, and their positions from `start` on, which keep the order."""
    numbered = enumerate(rows, start)
    if not sort:
        return [(kind.order(row), at, row) for at, row in numbered]
    key = kind.orders.get(sort) or kind.fields.get(sort)
    if key is not None:
        return [(key(row), at, row) for at, row in numbered]
    value, found = kind.value(sort), list[tuple[Any, int, Row]]()
    for at, row in numbered:
        found.append((_comparable(value(row)), at, row))
        await time_slice.yield_if_over()
    return found


def _comparable(value: Any) -> tuple[int, Any]:
    """Returns a key that compares with those of any other values: nothing comes first."""
    if value is None:
        return 0, 0
    if isinstance(value, (int, float)):
        return 1, value
    return 2, value if isinstance(value, (str, tuple)) else msgspec.json.encode(value).decode()


async def bare_list(rows: Sequence[Row], describe: Callable[[Row], Document]) -> Response:
    """Returns the documents of the rows as a JSON list, made in slices."""
    chunks = _chunks(rows, describe)
    if len(rows) > PAGE_SIZE_MAX:
        return StreamingResponse(chunks, media_type=_MEDIA_TYPE, headers=NO_STORE)
    body = b"".join([chunk async for chunk in chunks])
    return Response(body, media_type=_MEDIA_TYPE, headers=NO_STORE)


async def _chunks(rows: Iterable[Row], describe: Callable[[Row], Document]) -> AsyncIterator[bytes]:
    """Yields a JSON list in pieces of some milliseconds each."""
    separator, buffer, time_slice = b"[", bytearray(), TimeSlice()
    for row in rows:
        buffer += separator
        buffer += msgspec.json.encode(describe(row))
        separator = b","
        if time_slice.is_over:
            yield bytes(buffer)
            buffer.clear()
            await time_slice.yield_if_over()
    yield bytes(buffer) + (b"]" if separator == b"," else b"[]")


def _described(kind: ListSpec[Row], columns: tuple[str, ...]) -> Callable[[Row], Document]:
    """Returns a function that describes a row, by these columns alone if there are any."""
    if not columns:
        return kind.describe
    known = [(column, kind.fields[column]) for column in columns if column in kind.fields]
    if len(known) == len(columns) and not any("." in column for column in columns):
        return lambda row: {column: value(row) for column, value in known}
    paths = [column.split(".") for column in columns]
    return lambda row: reduced(kind.describe(row), paths)
