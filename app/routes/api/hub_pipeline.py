"""The data pipeline: runs of jobs, and how far archives of streams have come.

No tag is needed, since jobs run as users who may do little else. A run is its owner's. Who reports
an archive reads the stream, and lets retention drop what it kept; that takes the permission to
configure the stream, which permits deleting it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from starlette.responses import Response

from ....core.auth import Kind
from ....core.errors import not_found
from ....hub.engine.port import BindingSpec, StreamState
from ....hub.runs.run import Run, RunReport, RunState
from ....hub.streams.archives import Archive
from ....hub.streams.finding import FoundStream, Source
from ...documents import pipeline, requests
from ...problems import Problem
from ...requests.properties import parse_query
from ...responses.times import rfc3339
from .call import Call, answer
from .filters import Filters
from .required_tags import ADMINISTRATOR, ANYBODY, MONITORING, sees
from .route import GONE, SET, Operation, Routes

ARCHIVE_QUERY: Final = ("source",)


async def _list(call: Call) -> Response:
    """Lists runs of jobs, those first that reported last, captures, which are bindings of streams,
    and archives of streams. Users see runs in virtual hosts that they may enter, and captures and
    archives of streams that they may read."""
    runs = [run for run in await call.context.hub.runs.all() if sees(call.user, run.vhost)]
    vhosts = [name for name in call.broker.vhosts if sees(call.user, name)]
    archives = [one for vhost in vhosts for one in call.context.hub.archives.all(vhost)]
    return answer(
        {
            "runs": [_run(call, run) for run in runs],
            "captures": await _captures(call, vhosts),
            "archives": [
                _archive(one)
                for one in archives
                if _may_see(call, one.stream.vhost, one.stream.name)
            ],
        }
    )


async def _captures(call: Call, vhosts: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the bindings of durable streams that the user may see."""
    found: list[dict[str, Any]] = []
    for vhost in vhosts:
        async for binding in call.context.engine.captures(vhost):
            if not _may_see(call, vhost, binding.destination):
                continue
            stream = await call.context.engine.stream(vhost, "q", binding.destination)
            state = None if stream is None else stream.state()
            if state is not None:
                found.append(_capture(vhost, binding, state))
    return found


async def _put_run(call: Call) -> Response:
    """Reports a run of a job. The body needs `state` (running, done, failed); it may have `rows`,
    `lag`, `dropped`, `error`, and at the first report `vhost` and `stream`."""
    job, name = call.names
    body = await call.body()
    vhost = body.text("vhost") if body.has("vhost") else "/"
    call.own_vhost(vhost)
    report = RunReport(
        _state(body.text("state")),
        body.integer("rows", 0),
        body.integer("lag") if body.has("lag") else None,
        body.text("error") if body.has("error") else "",
        body.integer("dropped", 0),
    )
    stream = body.text("stream") if body.has("stream") else ""
    is_new = await call.context.hub.runs.put(job, name, vhost, call.user.name, report, stream)
    await call.context.hub.results.expect(vhost)
    return Response(status_code=201 if is_new else 204)


async def _delete_run(call: Call) -> Response:
    """Deletes a run from the list; the job itself continues."""
    job, name = call.names
    runs = call.context.hub.runs
    found = await runs.get(job, name)
    if found is None or not sees(call.user, found.vhost):
        raise not_found(f"no run '{name}' of job '{job}'")
    if not ADMINISTRATOR.has(call.user):
        runs.require_owner(found, call.user.name)
    await runs.delete(found)
    return Response(status_code=204)


async def _put_archive(call: Call) -> Response:
    """Reports that an archive has all messages of a stream before an offset. The body needs
    `offset`; it may have `manifest`, where the archive is, and the stream's `incarnation`.

    The user needs permission to read and to configure the stream. `?source=exchange` names what an
    exchange keeps where a queue has the name too.
    """
    body = await call.body()
    found = await _stream(call)
    is_new = await call.context.hub.archives.put(
        found,
        call.names[2],
        body.integer("offset"),
        body.text("manifest") if body.has("manifest") else "",
        body.text("incarnation") if body.has("incarnation") else None,
    )
    return Response(status_code=201 if is_new else 204)


async def _delete_archive(call: Call) -> Response:
    """Forgets an archive. A stream whose policy names it drops nothing from then on."""
    await call.context.hub.archives.remove(await _stream(call), call.names[2])
    return Response(status_code=204)


async def _stream(call: Call) -> FoundStream:
    """Returns the stream in the path; raises `ChannelError` 403 before it says whether there is
    one."""
    vhost, name, _ = call.names
    filters = Filters(parse_query(call.request.scope["query_string"]), ARCHIVE_QUERY)
    source = filters.word("source", ("queue", "exchange"))
    call.own_vhost(vhost)
    kind: Kind = "exchange" if source == "exchange" else "queue"
    call.user.require(vhost, "read", kind, name)
    call.user.require(vhost, "configure", kind, name)
    return await call.context.hub.streams.find(vhost, name, cast(Source | None, source))


def _state(text: str) -> RunState:
    try:
        return RunState(text)
    except ValueError:
        raise Problem(
            400, f"key 'state' is '{text[:80]}', not one of {', '.join(RunState)}"
        ) from None


def _may_see(call: Call, vhost: str, stream: str) -> bool:
    return MONITORING.has(call.user) or call.user.permitted(vhost, "read", stream)


def _run(call: Call, run: Run) -> dict[str, Any]:
    report = run.report
    return {
        "job": run.job,
        "run": run.name,
        "vhost": run.vhost,
        "stream": run.stream,
        "owner": run.owner,
        "state": "lost" if call.context.hub.runs.is_lost(run) else report.state.value,
        "rows": report.rows,
        "lag": report.lag,
        "dropped": report.dropped,
        "error": report.error,
        "started": rfc3339(run.started_at),
        "updated": rfc3339(run.updated_at),
    }


def _capture(vhost: str, binding: BindingSpec, state: StreamState) -> dict[str, Any]:
    return {
        "vhost": vhost,
        "exchange": binding.source,
        "routing_key": binding.routing_key,
        "stream": binding.destination,
        "first": state.first,
        "next": state.next_offset,
    }


def _archive(archive: Archive) -> dict[str, Any]:
    report = archive.report
    return {
        "vhost": archive.stream.vhost,
        "stream": archive.stream.name,
        "source": archive.stream.source,
        "archive": archive.name,
        "offset": None if report is None else report.offset,
        "lag": archive.lag,
        "bytes_behind": archive.bytes_behind,
        "manifest": None if report is None else report.manifest,
        "updated": None if report is None else rfc3339(report.wall_ms / 1000),
        "retention_waits": archive.is_waited_for,
        "exceeded": archive.exceeded,
    }


ROUTES: Routes = {
    "/hub/pipeline": {"GET": Operation(_list, ANYBODY, {200: pipeline.Pipeline})},
    "/hub/pipeline/runs/{job}/{run}": {
        "PUT": Operation(_put_run, ANYBODY, SET, requests.PipelineRun),
        "DELETE": Operation(_delete_run, ANYBODY, GONE),
    },
    "/hub/pipeline/archives/{vhost}/{stream}/{archive}": {
        "PUT": Operation(_put_archive, ANYBODY, SET, requests.PipelineArchive),
        "DELETE": Operation(_delete_archive, ANYBODY, GONE),
    },
}
