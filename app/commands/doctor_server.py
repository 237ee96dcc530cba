"""What `warren doctor` asks a running server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any, Final, TypeGuard
from urllib.parse import urlsplit

from ...core import VERSION
from ...core.counted import counted
from .client import ApiClient
from .exit_codes import RequestRefused, Unreachable
from .findings import Finding, ok, problem, warning
from .login import Login

CLOCK_OFF_S: Final = 5.0
FILES_SHARE: Final = 0.8
_FAILING_SHOWN: Final = 5
_ENGINE: Final = "engine"
"""The member of a refusal by a hub on RabbitMQ that says where to ask instead."""


def look_at_server(api: ApiClient) -> Iterator[Finding]:
    """Yields findings about a server; only one if it can't be reached or the login is wrong."""
    subject = f"server {api.login.url}"
    try:
        overview = _overview(api)
    except Unreachable as error:
        yield problem(subject, str(error), "start it, or give --url")
        return
    except RequestRefused as error:
        yield problem(subject, str(error), "use an administrator's login")
        return
    if not _is_warren(overview):
        yield problem(subject, "is no Warren", "give the URL of one with --url")
        return
    yield _version(subject, str(overview["product_version"]))
    yield _clock(api)
    yield from _guest(api)
    for look in (_node, _connections, _storage, _callbacks, _dead_letters):
        yield from _permitted(look, api)


def ports_here(api: ApiClient) -> set[int]:
    """Returns the ports of the server; none if it is not on this machine or doesn't answer."""
    if not _is_loopback(urlsplit(api.login.url).hostname or ""):
        return set()
    try:
        overview = _overview(api)
    except (RequestRefused, Unreachable):
        return set()  # which look_at_server reports
    return {one["port"] for one in overview.get("listeners", ())} if _is_warren(overview) else set()


def _overview(api: ApiClient) -> Any:
    """Returns the overview; where RabbitMQ has that, what is known without it."""
    try:
        return api.get("/api/overview")
    except RequestRefused as error:
        if _ENGINE not in error.document:
            raise
    version = api.get("/api/version")["warren"]
    listeners = [{"port": urlsplit(api.login.url).port}]
    return {"product_name": "Warren", "product_version": version, "listeners": listeners}


def _is_warren(overview: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(overview, dict) and overview.get("product_name") == "Warren"


def _permitted(look: Callable[[ApiClient], Iterator[Finding]], api: ApiClient) -> Iterator[Finding]:
    """Yields what a check finds, or that the user may not look, or where to."""
    subject = look.__name__.strip("_")
    try:
        yield from look(api)
    except RequestRefused as error:
        if engine := error.document.get(_ENGINE):
            yield ok(subject, f"not looked at: RabbitMQ has it, with its management at {engine}")
        else:
            yield warning(subject, str(error), "use an administrator's login")


def _version(subject: str, version: str) -> Finding:
    if version != VERSION:
        return warning(subject, f"is Warren {version}, this command {VERSION}", "use one version")
    return ok(subject, f"is Warren {version}")


def _clock(api: ApiClient) -> Finding:
    """Compares the clocks: leases, signatures and tokens depend on them."""
    before_s = time.time()
    date = api.send("GET", "/api/whoami").headers.get("date", "")
    server_s = parsedate_to_datetime(date).timestamp()
    # The field has whole seconds.
    off_s = max(before_s - server_s - 1, server_s - time.time(), 0.0)
    if off_s > CLOCK_OFF_S:
        return warning(
            "clock", f"the server's differs from this machine's by {off_s:.0f} s",
            "run NTP on both: leases, signatures and tokens have times",
        )  # fmt: skip
    return ok("clock", "is that of this machine")


def _guest(api: ApiClient) -> Iterator[Finding]:
    """Looks whether everybody's password is accepted from elsewhere."""
    try:
        with ApiClient(Login(api.login.url, "guest", "guest", "")) as guest:
            guest.get("/api/whoami")
    except RequestRefused:
        yield ok("guest", "can't log in here with the password 'guest'")
        return
    if _is_loopback(urlsplit(api.login.url).hostname or ""):
        yield ok("guest", "may log in from this machine with the password 'guest'")
        return
    yield problem(
        "guest", "may log in from other machines with the password 'guest'",
        "remove it: 'warren user remove guest'; and don't set allow_guest or dev there",
    )  # fmt: skip


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _node(api: ApiClient) -> Iterator[Finding]:
    (node,) = api.get("/api/nodes")
    yield _alarm("memory alarm", node["mem_alarm"], "raise memory_limit")
    yield _alarm("disk alarm", node["disk_free_alarm"], "make room on the disk")
    used, total = node["fd_used"], node["fd_total"]
    if used > FILES_SHARE * total:
        yield warning(
            "open files", f"{used:,} of {total:,} are open",
            "raise the limit of the server's process (LimitNOFILE= in its unit)",
        )  # fmt: skip
    else:
        yield ok("open files", f"{used:,} of {total:,}")


def _alarm(subject: str, is_on: bool, more: str) -> Finding:
    if not is_on:
        return ok(subject, "is off")
    return problem(
        subject, "is on: publishers have to wait",
        f"consume or purge what queues keep, or {more}; an application that publishes and consumes "
        "over one connection waits for itself: give it two",
    )  # fmt: skip


def _connections(api: ApiClient) -> Iterator[Finding]:
    """Looks for connections that an alarm would keep from consuming: it stops those that publish,
    with all that they do."""
    consuming, publishing = set[str](), set[str]()
    for channel in api.pages("/api/channels", "items"):
        name = channel["connection_details"]["name"]
        if channel["consumer_count"]:
            consuming.add(name)
        if channel.get("message_stats", {}).get("publish"):
            publishing.add(name)
    both = sorted(consuming & publishing)
    if not both:
        yield ok("connections", "none both publishes and consumes")
        return
    yield warning(
        "connections", f"{len(both)} publish and consume, such as {both[0]}",
        "give each application two connections: while memory or disk is short, those that publish "
        "are stopped, and what they don't acknowledge keeps the alarm on",
    )  # fmt: skip


def _storage(api: ApiClient) -> Iterator[Finding]:
    try:
        api.get("/api/health/checks/storage")
        yield ok("storage", "all that is stored can be served")
    except RequestRefused as error:
        if error.status != 503:
            raise
        yield problem("storage", str(error), "see docs/damage.md, and 'warren repair list'")


def _callbacks(api: ApiClient) -> Iterator[Finding]:
    found = list(api.pages("/api/hub/subscriptions", "subscriptions"))
    failing = [one for one in found if (one["errors"] or {}).get("error_count")]
    for one in failing[:_FAILING_SHOWN]:
        errors = one["errors"]
        failures = counted(errors["error_count"], "failure")
        yield problem(
            f"callback {one['callback']}",
            f"{failures} since its last success: {errors['last_error_msg']}",
            f"'warren deliveries --subscription {one['id']}' shows the answers",
        )  # fmt: skip
    if len(failing) > _FAILING_SHOWN:
        text = f"{len(failing)} of {len(found)} fail"
        yield problem("callbacks", text, "'warren sub list --failing' shows all")
    elif not failing:
        yield ok("callbacks", f"none of {len(found)} fails")


def _dead_letters(api: ApiClient) -> Iterator[Finding]:
    page = api.get("/api/hub/dead-letters", {"page": 1, "page_size": 1})
    count = page["total_count"]
    if count:
        text = f"{counted(count, 'message')} could not be delivered"
        yield warning("dead letters", text, "'warren dead list' shows them, 'dead replay' returns")
    else:
        yield ok("dead letters", "there are none")
