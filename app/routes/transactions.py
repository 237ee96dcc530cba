"""`/transactions`: rows are staged in pieces by several tasks, and published by one commit.

    PUT    /transactions/QUERY/NUMBER/PARTITION/ATTEMPT/PIECE?exchange=NAME   rows
    POST   /transactions/QUERY/NUMBER?exchange=NAME          {"attempts": [[0, 7, 2], [1, 8, 1]]}
    DELETE /transactions/QUERY/NUMBER?exchange=NAME
    DELETE /transactions/QUERY?exchange=NAME

An attempt is named by its partition, its number and how many pieces it has. The commit is atomic,
and is answered when it is on disk. Repeated, it publishes nothing: the number of a query's last
commit is remembered, until the query is deleted. `vhost` is a parameter too.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ...core.auth import User
from ...core.auth.authorization import to_publish
from ...core.errors import LowOnMemory, QueueFull
from ...hub.transactions.rows import MEDIA_TYPE
from ...hub.transactions.staging import Piece, StagedAttempt, StagedTransaction
from ..context import Context
from ..problems import Problem, busy, low_on_disk, method_not_allowed
from ..requests.body import read_body
from ..requests.paths import decode
from ..requests.strict_json import loads

MAX_QUERY_BYTES: Final = 200
PIECE_BYTES: Final = 4 * 1024 * 1024
"""The size at which clients send small rows; a piece may have one large message beside that."""
MAX_COMMIT_BYTES: Final = 1024 * 1024
MAX_NUMBER: Final = 2**63 - 1
_Count = Annotated[int, msgspec.Meta(ge=0)]


class _Commit(msgspec.Struct, forbid_unknown_fields=True):
    attempts: list[tuple[_Count, _Count, _Count]]


async def piece(
    context: Context, request: Request, query: str, number: str, partition: str, attempt: str,
    index: str,
) -> Response:  # fmt: skip
    """Stages rows. Raises `Problem` 415 for another format, 503 or 507 during an alarm."""
    if request.method != "PUT":
        raise method_not_allowed(request.method, "PUT")
    user, _, transaction = await _transaction(context, request, query, number)
    if request.headers.get("content-type") != MEDIA_TYPE:
        raise Problem(415, f"rows are staged as {MEDIA_TYPE}")
    context.broker.alarms.require_none()
    limit = context.broker.limits.max_message_bytes + PIECE_BYTES
    data = await read_body(request.receive, limit, context.unfinished, user.name)
    place = Piece(
        _integer("partition", partition), _integer("attempt", attempt), _integer("piece", index)
    )
    count = await context.hub.transactions.stage(transaction, place, data)
    return JSONResponse({"rows": count}, 201)


async def transaction(context: Context, request: Request, query: str, number: str) -> Response:
    """Commits or aborts. Raises `Problem` 409 for a piece that is not staged, 503 for a full queue
    or during an alarm, 507 for a full disk."""
    match request.method:
        case "POST":
            return await _commit(context, request, query, number)
        case "DELETE":
            _, _, found = await _transaction(context, request, query, number)
            await context.hub.transactions.abort(found)
            return Response(status_code=204)
    raise method_not_allowed(request.method, "POST, DELETE")


async def series(context: Context, request: Request, query: str) -> Response:
    """Forgets what was committed of a query that does not go on."""
    if request.method != "DELETE":
        raise method_not_allowed(request.method, "DELETE")
    _, _, found = await _transaction(context, request, query, "0")
    await context.hub.transactions.forget(found.vhost, found.series)
    return Response(status_code=204)


async def _commit(context: Context, request: Request, query: str, number: str) -> Response:
    user, _, _ = await _transaction(context, request, query, number)
    body = await read_body(request.receive, MAX_COMMIT_BYTES, context.unfinished, user.name)
    # The body may have taken minutes, and the right, or the user, may be gone.
    user, exchange, found = await _transaction(context, request, query, number)
    attempts = await asyncio.to_thread(_attempts, body)
    context.broker.alarms.require_none()
    try:
        committed = await context.hub.transactions.commit(found, user, exchange, attempts)
    except (LowOnMemory, QueueFull) as error:
        raise busy(f"{error}; nothing was published") from error
    if not committed.is_durable:
        raise low_on_disk()
    return JSONResponse(
        {
            "published": committed.published,
            "unrouted": committed.unrouted,
            "replayed": committed.is_replayed,
            "last": committed.last,
        }
    )


def _attempts(body: bytes) -> list[StagedAttempt]:
    """Reads the attempts that are to be committed: 1 MiB of them takes a third of a second."""
    try:
        wanted = msgspec.convert(loads(body), _Commit)
    except msgspec.ValidationError as error:
        raise Problem(400, f'{error}; {{"attempts": [[partition, attempt, pieces]]}}') from error
    attempts: dict[int, StagedAttempt] = {}
    for one in wanted.attempts:
        if attempts.setdefault(one[0], found := StagedAttempt(*one)) is not found:
            raise Problem(
                400, f"attempts: partition {one[0]} is there twice; name one attempt of each"
            )
    return list(attempts.values())


async def _transaction(
    context: Context, request: Request, query: str, number: str
) -> tuple[User, str, StagedTransaction]:
    """Returns the user, the exchange and the transaction. Raises `ChannelError` 403 without write
    permission."""
    parameters = request.query_params
    vhost, exchange = parameters.get("vhost", "/"), parameters.get("exchange")
    user = await context.user_in(request, vhost, takes_tokens=True)
    if exchange is None:
        raise Problem(400, "the parameter 'exchange' is missing; it may be empty")
    to_publish(user, vhost, "exchange", exchange)
    name = decode(query.encode("latin-1"), MAX_QUERY_BYTES)
    series = f"{user.name}\0{exchange}\0{name}"
    return user, exchange, StagedTransaction(vhost, series, _integer("number", number))


def _integer(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 20 and int(text) <= MAX_NUMBER):
        raise Problem(400, f"{name} '{text[:40]}': a number from 0 to {MAX_NUMBER} is needed")
    return int(text)
