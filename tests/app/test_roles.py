"""Every route of the HTTP interface with every method, for every role: what is not listed fails."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from starlette.routing import Mount, Route

from tests.app.conftest import World
from warrenmq.app.access.tokens import TokenUsers
from warrenmq.app.openapi import document
from warrenmq.app.route_table import other_routes
from warrenmq.hub.service import Hub
from warrenmq.hub.tokens.scope import read_scope

TAGS = ("management", "policymaker", "monitoring", "administrator")
ROLES = ("nobody", "wrong password", "no tag", *TAGS)
ADMITTED = {
    "everybody": ROLES,
    "users": ROLES[2:],
    "any tag": TAGS,
    "policymaker": ("policymaker", "administrator"),
    "monitoring": ("monitoring", "administrator"),
    "administrator": ("administrator",),
    "sessions": (),
}
"""The roles that each heading of the table admits; sessions need their cookie."""
TABLE = """
everybody:
  / GET
  /static/{file} GET
  /ui/{file} GET
  /js/{file} GET
  /demos GET
  /docs GET
  /docs/api GET
  /demos/ GET
  /demos/{file} GET
  /docs/ GET
  /docs/{page} GET
  /docs/api/ GET
  /docs/api/{file} GET
  /health/live GET
  /health/ready GET
  /openapi.json GET
  /hub GET POST
  /metrics GET
  /metrics/per-object GET
  /metrics/detailed GET
  /feeds/{name}.{format} GET
  /{vhost}/feeds/{name}.{format} GET
  /in/{secret} GET POST
  /hub/callback/{secret} GET POST
  /reversehttp/{label}/{token} GET PUT POST DELETE
  /reversehttp/{label}/{token}/{request} GET POST
  /api/auth GET
  /api/warren/login POST
  /api/warren/setup POST
users:
  /transactions/{query} DELETE
  /transactions/{query}/{number} POST DELETE
  /transactions/{query}/{number}/{partition}/{attempt}/{piece} PUT
  /endpoint/x/{name} GET PUT DELETE POST
  /{vhost}/endpoint/x/{name} GET PUT DELETE POST
  /endpoint/q/{name} GET PUT DELETE POST
  /{vhost}/endpoint/q/{name} GET PUT DELETE POST
  /subscribe/x/{name} GET POST DELETE
  /{vhost}/subscribe/x/{name} GET POST DELETE
  /subscribe/q/{name} GET POST DELETE
  /{vhost}/subscribe/q/{name} GET POST DELETE
  /stream/x/{name} GET
  /{vhost}/stream/x/{name} GET
  /stream/q/{name} GET
  /{vhost}/stream/q/{name} GET
  /streams/{vhost}/{name}/offsets GET
  /streams/{vhost}/{name}/chunks GET
  /streams/{vhost}/x/{name}/offsets GET
  /streams/{vhost}/x/{name}/chunks GET
  /streams/{vhost}/q/{name}/offsets GET
  /streams/{vhost}/q/{name}/chunks GET
  /reversehttp GET POST
  /api/hub/tunnels GET
  /api/hub/tunnels/{label} DELETE
  /api/hub/pipeline GET
  /api/hub/pipeline/results GET
  /api/hub/pipeline/runs/{job}/{run} PUT DELETE
  /api/hub/pipeline/archives/{vhost}/{stream}/{archive} PUT DELETE
  /api/warren/logout POST
any tag:
  /api/vhosts GET
  /api/vhosts/{vhost} GET
  /api/whoami GET
  /api/vhost-limits GET
  /api/vhost-limits/{vhost} GET
  /api/user-limits GET
  /api/user-limits/{user} GET
  /api/exchanges/{vhost}/{exchange}/publish POST
  /api/queues/{vhost}/{queue}/get POST
  /api/queues/{vhost}/{queue}/contents DELETE
  /api/queues/{vhost}/{queue}/pause PUT
  /api/queues/{vhost}/{queue}/restart PUT
  /api/queues/{vhost}/{queue}/stream POST
  /api/queues/{vhost}/{queue}/unacked GET
  /api/queues/{vhost}/{queue}/resume PUT
  /api/queues/{vhost}/{queue}/actions POST
  /api/warren/queues/{vhost}/{queue}/messages GET
  /api/warren/queues/{vhost}/{queue}/unacknowledged GET
  /api/warren/queues/{vhost}/{queue}/move POST
  /api/overview GET
  /api/cluster-name GET
  /api/extensions GET
  /api/version GET
  /api/feature-flags GET
  /api/deprecated-features GET
  /api/deprecated-features/used GET
  /api/auth/hash_password PUT
  /api/auth/hash_password/{password} GET
  /api/bindings/{vhost}/e/{source}/q/{destination} GET POST
  /api/hub/capabilities GET POST
  /api/hub/capabilities/{id} GET DELETE
  /api/hub/tokens GET POST
  /api/hub/tokens/{id} GET DELETE
  /api/hub/upstreams GET
  /api/hub/upstreams/{vhost} GET
  /api/hub/upstreams/{vhost}/{name} GET PUT DELETE
  /api/hub/subscriptions GET POST
  /api/hub/subscriptions/{id} GET DELETE
  /api/hub/subscriptions/{id}/pause POST
  /api/hub/subscriptions/{id}/resume POST
  /api/hub/subscriptions/{id}/renew POST
  /api/hub/subscriptions/{vhost}/{type}/{name}/{topic}/{callback} GET PUT DELETE
  /api/hub/consumers GET
  /api/hub/errors GET
  /api/hub/attempts/resend POST
  /api/hub/attempts/{id} GET
  /api/hub/attempts/{id}/resend POST
  /api/hub/subscriptions/{id}/test POST
  /api/hub/feeds GET POST
  /api/hub/feeds.opml GET
  /api/hub/feeds/import POST
  /api/hub/feeds/import/{id} GET
  /api/hub/feeds/{name} GET PATCH DELETE
  /api/hub/feeds/{name}/poll POST
  /api/hub/feeds/{name}/pause POST
  /api/hub/feeds/{name}/resume POST
  /api/hub/outputs GET
  /api/hub/outputs/{name} GET PUT DELETE
  /api/hub/outputs/{name}/tokens GET POST
  /api/hub/outputs/{name}/tokens/{id} DELETE
  /api/hub/attempts GET
  /api/hub/attempts/counts GET
  /api/hub/subscriptions/{id}/attempts GET
  /api/hub/dead-letters GET
  /api/hub/dead-letters/replay POST
  /api/hub/dead-letters/delete POST
  /api/hub/dead-letters/{vhost}/{id} GET DELETE
  /api/hub/dead-letters/{vhost}/{id}/replay POST
  /api/health/checks/alarms GET
  /api/health/checks/local-alarms GET
  /api/health/checks/certificate-expiration/{within}/{unit} GET
  /api/health/checks/port-listener/{port} GET
  /api/health/checks/protocol-listener/{protocol} GET
  /api/health/checks/virtual-hosts GET
  /api/health/checks/node-is-quorum-critical GET
  /api/health/checks/node-is-mirror-sync-critical GET
  /api/health/checks/is-in-service GET
  /api/health/checks/ready-to-serve-clients GET
  /api/health/checks/below-node-connection-limit GET
  /api/health/checks/reached-target-cluster-size GET
  /api/health/checks/metadata-store/initialized GET
  /api/health/checks/metadata-store/initialized/with-data GET
  /api/health/checks/quorum-queues-without-elected-leaders/all-vhosts GET
  /api/health/checks/quorum-queues-without-elected-leaders/all-vhosts/pattern/{pattern} GET
  /api/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost} GET
  /api/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}/pattern/{pattern} GET
  /api/healthchecks/node GET
  /api/aliveness-test/{vhost} GET
  /api/bindings GET
  /api/bindings/{vhost} GET
  /api/queues/{vhost}/{queue}/bindings GET
  /api/warren/live GET
  /api/exchanges/{vhost}/{exchange}/bindings/source GET
  /api/exchanges/{vhost}/{exchange}/bindings/destination GET
  /api/bindings/{vhost}/e/{source}/q/{destination}/{key} GET DELETE
  /api/bindings/{vhost}/e/{source}/e/{destination} GET POST
  /api/bindings/{vhost}/e/{source}/e/{destination}/{key} GET DELETE
  /api/queues GET
  /api/queues/detailed GET
  /api/queues/{vhost} GET
  /api/queues/{vhost}/{queue} GET PUT DELETE
  /api/exchanges GET
  /api/exchanges/{vhost} GET
  /api/exchanges/{vhost}/{exchange} GET PUT DELETE
  /api/connections GET
  /api/connections/{connection} GET DELETE
  /api/connections/{connection}/channels GET
  /api/connections/username/{user} GET
  /api/vhosts/{vhost}/connections GET
  /api/channels GET
  /api/channels/{channel} GET
  /api/vhosts/{vhost}/channels GET
  /api/consumers GET
  /api/consumers/{vhost} GET
  /api/consumers/{vhost}/{connection}/{channel}/{tag} DELETE
  /api/healthchecks/node/{node} GET
policymaker:
  /api/policies GET
  /api/policies/{vhost} GET
  /api/policies/{vhost}/{policy} GET PUT DELETE
  /api/operator-policies GET
  /api/operator-policies/{vhost} GET
  /api/operator-policies/{vhost}/{policy} GET
  /api/parameters GET
  /api/parameters/{component} GET
  /api/parameters/{component}/{vhost} GET
  /api/parameters/{component}/{vhost}/{name} GET PUT DELETE
  /api/global-parameters GET
  /api/global-parameters/{name} GET
monitoring:
  /api/nodes GET
  /api/nodes/{node} GET
  /api/nodes/{node}/memory GET
  /api/shovels GET
  /api/shovels/{vhost} GET
  /api/federation-links GET
  /api/federation-links/{vhost} GET
  /api/auth/attempts/{node} GET
  /api/auth/attempts/{node}/source GET
  /api/health/checks/storage GET
  /api/health/checks/patterns GET
administrator:
  /subscriptions/x/{name} GET
  /{vhost}/subscriptions/x/{name} GET
  /subscriptions/q/{name} GET
  /{vhost}/subscriptions/q/{name} GET
  /subscriptions GET POST
  /subscriptions/errors GET
  /api/vhosts/{vhost} PUT DELETE
  /api/vhosts/{vhost}/deletion/protection POST DELETE
  /api/users GET
  /api/users/without-permissions GET
  /api/users/bulk-delete POST
  /api/users/{user} GET PUT DELETE
  /api/permissions GET
  /api/permissions/{vhost}/{user} GET PUT DELETE
  /api/topic-permissions GET
  /api/topic-permissions/{vhost}/{user} GET PUT DELETE
  /api/topic-permissions/{vhost}/{user}/{exchange} GET DELETE
  /api/users/{user}/permissions GET
  /api/users/{user}/topic-permissions GET
  /api/vhosts/{vhost}/permissions GET
  /api/vhosts/{vhost}/topic-permissions GET
  /api/operator-policies/{vhost}/{policy} PUT DELETE
  /api/vhost-limits/{vhost}/{limit} PUT DELETE
  /api/user-limits/{user}/{limit} PUT DELETE
  /api/global-parameters/{name} PUT DELETE
  /api/cluster-name PUT
  /api/feature-flags/{name}/enable PUT
  /api/rebalance/queues POST
  /api/reset DELETE
  /api/reset/{node} DELETE
  /api/definitions GET POST
  /api/definitions/{vhost} GET POST
  /api/hub/subscriptions/batch POST
  /api/hub/environment GET
  /api/hub/topics GET
  /api/hub/topics/ping POST
  /api/warren/quarantine GET
  /api/warren/snapshots GET POST
  /api/warren/snapshots/{id} DELETE
  /api/warren/log-levels GET
  /api/warren/log-levels/{area} PUT DELETE
  /api/warren/audit GET
  /api/hub/audit GET
  /api/connections/username/{user} DELETE
  /api/warren/log GET
  /api/hub/log GET
  /api/livelog GET
  /api/logs GET
  /api/definitions/upload POST
sessions:
  /api/warren/session GET
"""  # fmt: skip
NAMES = {"number": "1", "partition": "0", "attempt": "0", "piece": "0", "format": "atom"}
"""Of path segments that can't be any name."""
_TRANSACTION = "?exchange=absent"
QUERIES = {
    "/api/warren/log": "?lines=none",
    "/api/hub/log": "?lines=none",
    "/api/livelog": "?lines=none",
    "/transactions/{query}": _TRANSACTION,
    "/transactions/{query}/{number}": _TRANSACTION,
    "/transactions/{query}/{number}/{partition}/{attempt}/{piece}": _TRANSACTION,
}
"""Of answers that would not end, and what rights are looked for at."""

OPENED: dict[str, set[str]] = {
    "write": {
        "GET /endpoint", "GET /subscribe", "POST /endpoint", "PUT /transactions",
        "POST /transactions", "DELETE /transactions",
    },
    "read": {"GET /endpoint", "GET /subscribe", "POST /subscribe", "GET /stream", "GET /streams"},
}  # fmt: skip
"""What tokens of one scope open beside what is open to everybody. GET describes the resource."""


def table() -> Iterator[tuple[tuple[str, str], str]]:
    heading = ""
    for line in TABLE.strip().splitlines():
        if not line.startswith(" "):
            heading = line.removesuffix(":")
            continue
        path, *methods = line.split()
        yield from (((path, method), heading) for method in methods)


def routes() -> set[tuple[str, str]]:
    return {
        (path, method.upper())
        for path, operations in document("1")["paths"].items()
        for method in operations.keys() - {"parameters"}
    }


def called(path: str) -> str:
    """Returns the path with names of what does not exist."""
    found = re.sub(r"\{(\w+)\}", lambda name: NAMES.get(name[1], "absent"), path)
    return found + QUERIES.get(path, "")


def test_every_route_is_listed(world: World) -> None:
    listed = dict(table())
    assert routes() == set(listed)
    paths = [called(path) for path, _ in listed]
    for route in other_routes(world.context, lambda: True):
        if isinstance(route, Route):
            assert any(route.path_regex.match(path) for path in paths), route.path
        else:
            assert isinstance(route, Mount)
            mounts = ("/api", "/static", "/ui", "/js", "/demos", "/docs", "/docs/api")
            assert route.path in mounts


@pytest.mark.parametrize("role", ROLES)
async def test_who_is_admitted(world: World, hub: Hub, role: str) -> None:
    """401 and 403 are refusals; any other answer is about a request that was admitted."""
    world.users.throttle.enabled = False
    world.users.add("someone", "secret", [role] if role in TAGS else [])
    world.users.set_permissions("someone", "/", ".*", ".*", ".*")
    password = "wrong" if role == "wrong password" else "secret"
    wrong = []
    async with world.client(auth=None if role == "nobody" else ("someone", password)) as http:
        http.event_hooks = {}
        for (path, method), heading in table():
            answer = await http.request(
                method, called(path), headers={"Accept": "application/json"}
            )
            is_admitted = answer.status_code not in (401, 403)
            if is_admitted != (role in ADMITTED[heading]):
                wrong.append((method, path, answer.status_code))
    assert wrong == []


@pytest.mark.parametrize("access", OPENED)
async def test_a_token_to_read_or_write_opens_no_management_route(
    world: World, hub: Hub, access: str
) -> None:
    """A token that publishes or subscribes is of no use for anything else."""
    tokens = TokenUsers(hub.tokens, world.users)
    world.context.authenticator.find_token_user = tokens.find
    world.context.authenticator.find_managing_user = tokens.managing
    scopes = [
        read_scope({access: f"{letter}/*", "vhost": vhost})
        for letter in "xq"
        for vhost in ("/", "other/one")
    ]
    _, secret = await hub.tokens.make("page", "guest", scopes)
    opened = set()
    async with world.client(auth=None) as http:
        http.event_hooks = {}
        http.headers.update({"Accept": "application/json", "Authorization": f"Bearer {secret}"})
        for (path, method), heading in table():
            answer = await http.request(method, called(path.replace("{vhost}", "other%2Fone")))
            if answer.status_code not in (401, 403) and heading != "everybody":
                facet = path.removeprefix("/{vhost}").split("/")[1]
                opened.add(f"{method} /{facet}")
    assert opened == OPENED[access]
