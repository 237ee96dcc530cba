"""The page of the HTTP API in a real browser."""

from __future__ import annotations

import pytest

from .browsers import Page

pytestmark = pytest.mark.thorough

OPEN = "document.querySelector('.operation[open]')"


def test_operations_are_found_and_shown(page: Page, hub_url: str) -> None:
    page.open(f"{hub_url}docs/api/")
    page.wait("/^[0-9]{3} operations$/.test(document.querySelector('#count').textContent)")
    page.type("#search", "post queues get")
    page.wait("document.querySelector('#count').textContent === '1 operation'")
    page.click(".operation:not([hidden]) summary")
    page.shows("ackmode: ", ".operation[open]")
    page.shows(
        """-X POST -H 'Content-Type: application/json' -d '{"count":1,"""
        """"ackmode":"ack_requeue_true","encoding":"auto"}' """
        f"'{hub_url}api/queues/{{vhost}}/{{queue}}/get'",
        ".operation[open]",
    )
    page.type("#search", "no such words")
    page.wait("document.querySelector('#count').textContent.startsWith('0 ')")


def test_an_operation_has_a_link(page: Page, hub_url: str) -> None:
    page.open(f"{hub_url}docs/api/#get-/api/overview")
    page.wait(f"{OPEN}?.id === 'get-/api/overview'")
    page.shows("cluster_name: string", ".operation[open]")
