"""What several tests of the HTTP side say alike."""

from __future__ import annotations

import httpx


def problem(response: httpx.Response, status: int) -> str:
    """The detail of the problem document (RFC 9457) that answers with this status."""
    assert response.status_code == status, (response.status_code, response.text)
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert document["status"] == status
    assert document["title"]
    assert document["type"]
    return str(document["detail"])
