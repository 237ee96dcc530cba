"""Commands and responses that several tests of `app` check."""

from __future__ import annotations

import os
import subprocess

import httpx

from tests.support.forks import FORKS

COMMAND_TIMEOUT_S = 30


def warren(
    *arguments: str, given: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, with no settings in the environment but these."""
    clean = {name: value for name, value in os.environ.items() if "WARREN" not in name}
    return FORKS.run(arguments, {**clean, **environment}, given, COMMAND_TIMEOUT_S)


def refusal(*arguments: str, given: str = "", **environment: str) -> str:
    """Runs a command that is refused; returns its one line on stderr."""
    result = warren(*arguments, given=given, **environment)
    assert result.returncode == 2, result
    assert result.stderr.startswith("warren: ")
    assert result.stderr.count("\n") == 1, result.stderr
    assert "ready" not in result.stdout
    return result.stderr


def problem(response: httpx.Response, status: int) -> str:
    """The detail of the problem document (RFC 9457) that answers with this status."""
    assert response.status_code == status, (response.status_code, response.text)
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert document["status"] == status
    assert document["title"]
    assert document["type"]
    return str(document["detail"])
