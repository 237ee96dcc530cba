"""The requests that `/openapi.json` describes, held against a running server by schemathesis."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.server import WarrenServer
from warrenmq.app.openapi_requests import BODIES
from warrenmq.app.routes.api.router import TABLES

CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
# A name that no generated request has: otherwise one changes the password.
USER, PASSWORD = "zq-operator", "zq-operator-password"
# What never ends, ends the session, fills the disk or forgets the statistics; rows are binary.
APART = (
    "/stream/|/reversehttp|/(log|live|livelog)$|/warren/snapshots|/warren/log(in|out)$|/reset"
    "|[{]piece[}]"
)
HUB = ("--include-path-regex", "^/api/hub/")
LIMIT_S = 900
THOROUGH = pytest.mark.thorough
WITHOUT_BODY = {
    ("/feature-flags/{name}/enable", "PUT"), ("/hub/dead-letters/{vhost}/{id}/replay", "POST"),
    ("/hub/attempts/{id}/resend", "POST"), ("/queues/{vhost}/{queue}/pause", "PUT"),
    ("/queues/{vhost}/{queue}/resume", "PUT"), ("/queues/{vhost}/{queue}/restart", "PUT"),
    ("/hub/feeds/{name}/pause", "POST"), ("/hub/feeds/{name}/poll", "POST"),
    ("/hub/feeds/{name}/resume", "POST"), ("/hub/subscriptions/{id}/pause", "POST"),
    ("/hub/subscriptions/{id}/resume", "POST"), ("/rebalance/queues", "POST"),
    ("/vhosts/{vhost}/deletion/protection", "POST"), ("/warren/logout", "POST"),
    ("/warren/snapshots", "POST"),
}  # fmt: skip


def test_every_body_is_described() -> None:
    taking = {
        (path, method)
        for table in TABLES
        for path in table
        for method in table[path]
        if method in ("PATCH", "POST", "PUT")
    }
    described = {
        (path.removeprefix("/api"), method.upper())
        for path in BODIES
        for method in BODIES[path]
        if path.startswith("/api")
    }
    assert taking - described == WITHOUT_BODY
    assert described <= taking


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize(
    "operations",
    [
        pytest.param(("examples", "--exclude-method", "GET", *HUB), id="examples-of-the-hub"),
        pytest.param(("coverage", "--exclude-method", "GET"), id="changes", marks=THOROUGH),
        pytest.param(("coverage", "--include-method", "GET"), id="reads", marks=THOROUGH),
    ],
)
def test_generated_requests_are_answered_as_described(
    operations: tuple[str, ...], tmp_path: Path
) -> None:
    """The examples of each operation, or wrong, missing and odd values, methods and credentials: no
    answer is an error of the server or undescribed, nothing that violates the description is
    accepted, and what fits it is."""
    user = {"WARREN_DEFAULT_USER": USER, "WARREN_DEFAULT_PASS": PASSWORD}
    with WarrenServer(env=user) as server:
        done = subprocess.run(
            [
                Path(sys.executable).with_name("schemathesis"),
                *("--config-file", CONFIGURATION, "run", f"{server.http_url}/openapi.json"),
                *("--auth", f"{USER}:{PASSWORD}", "--no-color"),
                *("--exclude-path-regex", APART, "--generation-deterministic"),
                *("--phases", *operations),
            ],
            cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-20_000:]
