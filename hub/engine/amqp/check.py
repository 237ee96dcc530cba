"""Checks at the start whether a cluster can keep the hub's promises, a line for each reason why
not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ....core.auth import ADMINISTRATOR
from .management import Management

VERSION: Final = (3, 10)
"""The first one with a time to live, and safe dead-lettering, in quorum queues."""
IMPERSONATOR: Final = "impersonator"
FEATURES: Final = ("quorum_queue", "stream_queue")
OWN_QUEUES: Final = ("hub.dead", "hub.sub." + 32 * "0", "hub.retry.60s")
BREAKING: Final = ("message-ttl", "expires", "max-length", "max-length-bytes", "delivery-limit")
"""Keys of policies that would drop what the hub has promised to deliver."""
_RIGHTS: Final = ("configure", "write", "read")


async def findings(management: Management, user: str) -> Sequence[str]:
    """Returns what is missing, empty if nothing is. Raises `EngineUnavailable`."""
    overview = await management.get("overview", columns="rabbitmq_version")
    permissions = await management.list("permissions")
    return [
        *_of_version(str((overview or {}).get("rabbitmq_version", ""))),
        *_of_features(await management.list("feature-flags", columns="name,state")),
        *_of_user(user, await management.get("whoami") or {}),
        *_of_permissions(user, [one for one in permissions if one["user"] == user]),
        *_of_policies("policy", await management.list("policies")),
        *_of_policies("operator policy", await management.list("operator-policies")),
    ]


def _of_version(version: str) -> Iterator[str]:
    found = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if found < VERSION:
        needed = ".".join(map(str, VERSION))
        yield f"its version is {version or 'unknown'}, and {needed} or newer is needed"


def _of_features(flags: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    states = {one["name"]: one["state"] for one in flags}
    for name in FEATURES:
        if states.get(name, "enabled") != "enabled":
            yield f"the feature flag {name} is {states[name]}: rabbitmqctl enable_feature_flag all"


def _of_user(user: str, whoami: Mapping[str, Any]) -> Iterator[str]:
    tags = whoami.get("tags", [])
    tags = tags if isinstance(tags, list) else tags.split(",")
    missing = [tag for tag in (ADMINISTRATOR, IMPERSONATOR) if tag not in tags]
    if missing:
        command = f"rabbitmqctl set_user_tags {user} {ADMINISTRATOR} {IMPERSONATOR}"
        yield f"its user '{user}' lacks the tag {' and '.join(missing)}: {command}"


def _of_permissions(user: str, own: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not own:
        yield f"its user '{user}' has permissions in no virtual host: rabbitmqctl set_permissions"
    for one in own:
        lacks = [right for right in _RIGHTS if not _matches(one[right], OWN_QUEUES)]
        if lacks:
            yield (
                f"its user '{user}' may not {', '.join(lacks)} names that begin with hub. in vhost "
                f"'{one['vhost']}': rabbitmqctl set_permissions -p {one['vhost']} {user} .* .* .*"
            )


def _of_policies(kind: str, policies: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in policies:
        keys = [key for key in BREAKING if key in one["definition"]]
        if keys and one["apply-to"] != "exchanges" and _matches_any(one["pattern"]):
            yield (
                f"{kind} '{one['name']}' in vhost '{one['vhost']}' sets {', '.join(keys)} for the "
                f"hub's queues too, which would lose messages: begin its pattern with ^(?!hub\\.)"
            )


def _matches_any(pattern: str) -> bool:
    """Returns whether a policy with this pattern, empty for all names, is for a queue of the
    hub."""
    return not pattern or any(_matches(pattern, [name]) for name in OWN_QUEUES)


def _matches(pattern: str, names: Sequence[str]) -> bool:
    """Returns whether RabbitMQ's pattern of permissions matches all names; an empty one matches
    none, and one that can't be read here does."""
    try:
        found = re.compile(pattern)
    except re.error:
        return True
    return bool(pattern) and all(found.search(name) for name in names)
