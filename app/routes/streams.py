"""`/streams`: the messages of a stream as they lie in the log (docs/streams.md)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ...core.auth import User
from ...core.auth.authorization import at_topics
from ...core.errors import access_refused
from ...hub.live.cursors import moment_ms
from ...hub.streams.finding import FoundStream, Source
from ...hub.streams.streams import ANSWER_BYTES, ReadChunks, WantedMessages
from ..context import Context
from ..problems import Problem, method_not_allowed
from ..requests.byte_range import requested_range
from ..requests.parameters import unknown_parameter
from ..requests.paths import decode
from ..requests.properties import flag, parse_query
from ..responses.negotiation import choose
from ..responses.streamed_response import StreamedResponse, part_of, pieces_of

CHUNKS: Final = "application/vnd.warren.chunks"
ARROW: Final = "application/vnd.apache.arrow.stream"
OFFSETS_QUERY: Final = ("timestamp", "start", "max_bytes")
CHUNKS_QUERY: Final = ("start", "end", "incarnation", "max_bytes", "skip_damaged")
SOURCES: Final[dict[str, Source | None]] = {"": None, "x/": "exchange", "q/": "queue"}
"""What a stream's name belongs to, by the part of the path before it."""
_ALL_KEYS: Final = frozenset({".*", "^.*$"})
_OFFSET_MAX: Final = 2**63 - 1

Query = Mapping[str, str]


async def offsets(
    context: Context, request: Request, vhost: str, name: str, source: Source | None = None
) -> Response:
    """Returns the first and the next offset of a stream, and its incarnation."""
    query = _query(request, OFFSETS_QUERY)
    _, found = await _found(context, request, vhost, name, source)
    state = found.state()
    document: dict[str, Any] = {
        "stream": found.name, "vhost": found.vhost, "source": found.source, "first": state.first,
        "next": state.next_offset, "incarnation": state.incarnation, "bytes": state.size_bytes,
        "archived_first": await context.hub.streams.archived_first(found),
    }  # fmt: skip
    if "timestamp" in query:
        document["at"] = await context.hub.streams.find_moment(found, _wall_ms(query["timestamp"]))
    if "start" in query or "max_bytes" in query:
        start, size = _number(query, "start"), _number(query, "max_bytes", low=1)
        document["limit"] = await context.hub.streams.limit(found, start, size)
    return JSONResponse(document)


async def chunks(
    context: Context, request: Request, vhost: str, name: str, source: Source | None = None
) -> Response:
    """Returns the records of a stream with the messages from `start` to `end`."""
    query = _query(request, CHUNKS_QUERY)
    user, found = await _found(context, request, vhost, name, source)
    accept = request.headers.get("accept", "")
    media_type = choose(accept, (CHUNKS, ARROW))
    if media_type is None:
        raise Problem(406, f"'{accept[:200]}' accepts neither {CHUNKS} nor {ARROW}")
    wanted = WantedMessages(
        _number(query, "start"),
        _number(query, "end") if "end" in query else None,
        query.get("incarnation"),
        flag("skip_damaged", query.get("skip_damaged", "false")),
    )
    limit = _number(query, "max_bytes", low=1) if "max_bytes" in query else None
    async with AsyncExitStack() as stack:
        streams = context.hub.streams
        await stack.enter_async_context(streams.answering(user.name))
        if media_type == ARROW:
            pieces = _while_permitted(user, found, streams.arrow(found, wanted, limit))
            await anext(pieces)
            return StreamedResponse(pieces, {}, ARROW, stack.pop_all())
        read = await streams.read(found, wanted, ANSWER_BYTES if limit is None else limit)
        headers = _headers(read)
        if _is_known(request.headers.get("if-none-match", ""), headers["ETag"]):
            return Response(status_code=304, headers=headers)
        return _sent(request, read, headers, stack)


def _sent(
    request: Request, read: ReadChunks, headers: dict[str, str], stack: AsyncExitStack
) -> Response:
    """Returns an answer with all octets of the chunks, or with the range that is asked for; it
    releases the memory of `stack` once it is sent. Raises `Problem` 416."""
    size, pieces = read.chunks.size_bytes, read.chunks.pieces
    # Ranges are for GET alone (RFC 9110 14.2).
    asked = request.headers if request.method == "GET" else {}
    wanted = requested_range(asked, headers["ETag"], size)
    # Not before: a refusal has to release it.
    memory = stack.pop_all()
    if wanted is None:
        headers["Content-Length"] = str(size)
        return StreamedResponse(pieces_of(pieces), headers, CHUNKS, memory)
    headers["Content-Length"] = str(len(wanted))
    headers["Content-Range"] = f"bytes {wanted[0]}-{wanted[-1]}/{size}"
    return StreamedResponse(pieces_of(part_of(pieces, wanted)), headers, CHUNKS, memory, 206)


async def _while_permitted(
    user: User, found: FoundStream, pieces: AsyncGenerator[bytes]
) -> AsyncGenerator[bytes]:
    """Yields pieces as long as the user may read the stream: a token may end meanwhile. Raises
    `ChannelError` 403 then."""
    async with aclosing(pieces):
        async for piece in pieces:
            user.require(found.vhost, "read", found.source, found.name)
            yield piece


def _headers(read: ReadChunks) -> dict[str, str]:
    first, behind = str(read.chunks.first), str(read.chunks.next_offset)
    return {
        "Vary": "Accept",
        "Accept-Ranges": "bytes",
        # With a checksum: compaction moves records, and a chunk says where its record lies.
        "ETag": f'"{read.incarnation}-{first}-{behind}-{read.chunks.checksum:08x}"',
        "Warren-First-Offset": first,
        "Warren-Next-Offset": behind,
    }


def _is_known(if_none_match: str, etag: str) -> bool:
    given = {part.strip().removeprefix("W/") for part in if_none_match.split(",")}
    return bool(given & {"*", etag.removeprefix("W/")})


async def _found(
    context: Context, request: Request, vhost: str, name: str, source: Source | None
) -> tuple[User, FoundStream]:
    """Returns the user, and the stream that they may read; without a source it is the queue, or
    else the exchange. Raises `ChannelError` 403 before it says whether there is one."""
    if request.method not in ("GET", "HEAD"):
        raise method_not_allowed(request.method, "GET, HEAD")
    host, stream = (decode(segment.encode("latin-1")) for segment in (vhost, name))
    user = await context.user_in(request, host, takes_tokens=True)
    if not user.permitted(host, "read", stream):
        user.require(host, "read", source or "queue", stream)
    found = await context.hub.streams.find(host, stream, source)
    # A token may be for only one of a queue and an exchange of this name.
    user.require(host, "read", found.source, stream)
    if found.source == "exchange":
        await _require_all_keys(context, user, found)
    return user, found


async def _require_all_keys(context: Context, user: User, found: FoundStream) -> None:
    """Raises `ChannelError` 403 for a user who may bind with some routing keys only: chunks have
    messages of all."""
    spec = await context.engine.exchange(found.vhost, found.name)
    if spec is None:
        return
    topics = at_topics(user, found.vhost, found.name, spec.type, spec.arguments)
    if topics is not None and topics.permissions.read not in _ALL_KEYS:
        raise access_refused(
            f"read access to all messages of exchange '{found.name}' in vhost '{found.vhost}' "
            f"refused for user '{user.name}': the topic permission for reading is "
            f"'{topics.permissions.read}', not '.*'"
        )


def _query(request: Request, known: tuple[str, ...]) -> Query:
    query = parse_query(request.scope["query_string"])
    for name in query:
        if name not in known:
            raise unknown_parameter(name, known)
    return query


def _number(query: Query, name: str, default: int | None = None, *, low: int = 0) -> int:
    text = query.get(name)
    if text is None:
        if default is None:
            raise Problem(400, f"{name} is required")
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise Problem(400, f"{name} is '{text[:80]}', not a decimal number")
    if not low <= int(text) <= _OFFSET_MAX:
        raise Problem(400, f"{name} is {text}, not from {low} to {_OFFSET_MAX}")
    return int(text)


def _wall_ms(text: str) -> int:
    """Reads a time; raises `Problem` 400."""
    found = moment_ms(text)
    if found is None:
        detail = f"timestamp is '{text[:80]}', not a time such as 2026-11-22T20:14:34Z"
        raise Problem(400, f"{detail} (a + is sent as %2B)")
    return found
