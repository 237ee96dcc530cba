"""Outputs: feeds made of feeds, exchanges and streams, and the tokens of their readers.

Names are of a virtual host, `/` or that of the query `vhost`. An output uses the permissions of
its owner, who made it; only the owner and administrators see and change it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.responses import JSONResponse, Response

from ....core.errors import not_found
from ....hub.outputs.definition import Definition, OutputSource, read_definition
from ....hub.outputs.output import Output, OutputKey, OutputToken
from ...documents import outputs, requests
from ...requests.properties import parse_query
from ...responses.times import rfc3339
from ...subscriptions.filter import PAGE_SIZE, PAGING, ListingPage, paging_of, read_page
from .call import Call, answer
from .document_links import document_links
from .filters import Filters
from .required_tags import ADMINISTRATOR, MANAGEMENT
from .route import GONE, SET, Operation, Routes

VHOST: Final = ("vhost",)
LIST_QUERY: Final = (*VHOST, "search", *PAGING)


async def _list(call: Call) -> Response:
    """Lists the user's outputs, all for administrators, in pages; `search` is part of name or
    title."""
    query = parse_query(call.request.scope["query_string"])
    search = (Filters(query, LIST_QUERY).text("search") or "").casefold()
    page = read_page(query) or ListingPage(1, PAGE_SIZE)
    found = [one for one in call.context.hub.outputs.all() if _is_visible(call, one)]
    if "vhost" in query:
        found = [one for one in found if one.key.vhost == query["vhost"]]
    if search:
        found = [one for one in found if search in f"{one.key.name}\n{one.title}".casefold()]
    shown = found[(page.number - 1) * page.size : page.number * page.size]
    paging = {**paging_of(page, len(found)), "item_count": len(shown), "total_count": len(found)}
    return answer({"items": [await _described(call, one) for one in shown], **paging})


async def _get(call: Call) -> Response:
    """Returns an output, with the addresses of its documents, and why sources bring nothing."""
    return answer(await _described(call, _find(call)))


async def _put(call: Call) -> Response:
    """Makes or changes an output. The body needs `sources`; it may have `filter`, `transform`,
    `title`, `description` and `visibility`: what is left out has its default (docs/feeds.md).

    The user needs read permission on each source. Answers 201 for a new one, else 204.
    """
    key = _key(call)
    call.own_vhost(key.vhost)
    definition = read_definition((await call.body()).everything())
    call.own_vhost(key.vhost)
    is_administrator = ADMINISTRATOR.has(call.user)
    is_new = await call.context.hub.outputs.put(
        key, call.user.name, definition, is_administrator=is_administrator
    )
    return Response(status_code=201 if is_new else 204)


async def _delete(call: Call) -> Response:
    """Removes an output with its items and tokens; its documents are answered with 410."""
    await call.context.hub.outputs.remove(_find(call))
    return Response(status_code=204)


async def _list_tokens(call: Call) -> Response:
    """Lists the tokens of an output, without their secrets, which are shown once only."""
    tokens = call.context.hub.outputs.tokens.of(_find(call).key)
    return answer([_token(one) for one in tokens])


async def _make_token(call: Call) -> Response:
    """Makes a token with which a partner reads the documents of an output; it is shown only once.
    The body needs `name`, that of the partner."""
    output = _find(call)
    name = (await call.body()).text("name")
    made, secret = await call.context.hub.outputs.make_token(output, name)
    links = document_links(call, *output.key)
    created = {
        **_token(made),
        "token": secret,
        "documents": {one: f"{url}?token={secret}" for one, url in links.items()},
    }
    return JSONResponse(created, 201, headers={"Cache-Control": "no-store"})


async def _revoke_token(call: Call) -> Response:
    """Revokes a token: its holder can't read the documents any more, and subscriptions made with
    it end."""
    output, token_id = _find(call), call.names[1]
    tokens = call.context.hub.outputs.tokens
    found = next((one for one in tokens.of(output.key) if one.id == token_id), None)
    if found is None:
        raise not_found(f"no token '{token_id}' of {output.key}")
    await call.context.hub.outputs.revoke(found)
    return Response(status_code=204)


def _key(call: Call) -> OutputKey:
    query = parse_query(call.request.scope["query_string"])
    Filters(query, VHOST)
    return OutputKey(query.get("vhost", "/"), call.names[0])


def _find(call: Call) -> Output:
    """Returns the output in the path; raises `ChannelError` 404, for another user's output too."""
    key = _key(call)
    found = call.context.hub.outputs.get(key)
    if found is None or not _is_visible(call, found):
        raise not_found(f"no {key}")
    return found


def _is_visible(call: Call, output: Output) -> bool:
    return ADMINISTRATOR.has(call.user) or output.owner == call.user.name


async def _described(call: Call, output: Output) -> dict[str, Any]:
    definition, outputs = output.definition, call.context.hub.outputs
    problems = await outputs.problems(output)
    return {
        "name": output.key.name,
        "vhost": output.key.vhost,
        "owner": output.owner,
        "title": output.title,
        "description": definition.description,
        "visibility": definition.visibility,
        "sources": [
            {**_given(source), "problem": problems.get(f"sources[{number}]")}
            for number, source in enumerate(definition.sources)
        ],
        "filter": msgspec.to_builtins(definition.filter),
        "transform": msgspec.to_builtins(definition.transform),
        "documents": document_links(call, *output.key),
        "notice": problems.get("filter.drop_near_duplicates") or outputs.notice(output.key),
        "made_at": rfc3339(output.made_at),
        "changed_at": rfc3339(output.changed_at),
    }


def _given(source: OutputSource) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(source)
    return found


def _token(token: OutputToken) -> dict[str, Any]:
    return {"id": token.id, "name": token.name, "made_at": rfc3339(token.made_at)}


ROUTES: Routes = {
    "/hub/outputs": {
        "GET": Operation(_list, MANAGEMENT, {200: outputs.OutputPage}, query=LIST_QUERY)
    },
    "/hub/outputs/{name}": {
        "GET": Operation(_get, MANAGEMENT, {200: outputs.Output}, query=VHOST),
        "PUT": Operation(_put, MANAGEMENT, SET, Definition),
        "DELETE": Operation(_delete, MANAGEMENT, GONE),
    },
    "/hub/outputs/{name}/tokens": {
        "GET": Operation(_list_tokens, MANAGEMENT, {200: list[outputs.OutputToken]}, query=VHOST),
        "POST": Operation(_make_token, MANAGEMENT, {201: outputs.MadeOutputToken}, requests.Name),
    },
    "/hub/outputs/{name}/tokens/{id}": {"DELETE": Operation(_revoke_token, MANAGEMENT, GONE)},
}
