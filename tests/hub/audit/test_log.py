"""Entries are found again in either database, bounded, and wait while it fails."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.support.settings import hub_settings
from warrenmq.core.clock import ManualClock
from warrenmq.hub.audit import log
from warrenmq.hub.audit.entry import AuditFilter
from warrenmq.hub.audit.log import AuditLog
from warrenmq.hub.audit.table import AuditTable
from warrenmq.hub.errors import StorageFailed
from warrenmq.hub.settings import DAY_S
from warrenmq.hub.storage.storage import Storage

HERE = "127.0.0.1"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def audit(storage: Storage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> AuditLog:
    monkeypatch.setattr(log, "READ_WITHIN_S", 60.0)  # A busy machine's database may take longer.
    return AuditLog(storage, hub_settings(audit_retention_s=DAY_S, max_audit_rows=20), clock)


async def subjects(audit: AuditLog, **wanted: Any) -> list[str]:
    return [one.entry.subject for one in await audit.find(AuditFilter(**wanted))]


async def test_entries_are_found_by_user_address_action_and_path(audit: AuditLog) -> None:
    audit.record("ann", HERE, "put", "/api/users/a_c", before='{"a":1}', after='{"a":2}')
    audit.record("bob", "10.0.0.1", "login", status=401)
    audit.record("ann", "10.0.0.1", "delete", "/api/users/abc", token="ci")
    assert await subjects(audit) == ["/api/users/abc", "", "/api/users/a_c"]
    assert await subjects(audit, user="ann", address=HERE) == ["/api/users/a_c"]
    assert await subjects(audit, action="login") == [""]
    assert await subjects(audit, subject="/api/users/a_") == ["/api/users/a_c"]
    newest, _, oldest = await audit.find(AuditFilter())
    assert (newest.entry.token, oldest.entry.after) == ("ci", '{"a":2}')
    assert await subjects(audit, limit=1, before=newest.id) == [""]


async def test_any_text_can_be_stored(audit: AuditLog) -> None:
    audit.record("\0\ud800" * 200, HERE, "login", status=401)
    [kept] = await audit.find(AuditFilter())
    assert kept.entry.user == "\ufffd?" * 127 + "\ufffd"


async def test_old_ones_and_too_many_are_deleted(
    audit: AuditLog, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "CLEAN_AFTER_ROWS", 1)
    for number in range(22):
        audit.record("ann", HERE, "put", str(number))
    kept = [str(number) for number in range(21, 1, -1)]
    assert await subjects(audit) == kept
    for _ in range(30):
        audit.record("mallory", HERE, "login", status=401)
    assert await subjects(audit, user="mallory") == ["", ""]
    assert await subjects(audit, user="ann") == kept
    clock.advance((DAY_S + 1) * 1_000)
    assert await subjects(audit) == []


async def test_a_failing_database_is_reported_and_tried_again(
    audit: AuditLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    add, failures = AuditTable.add, 2

    async def fails_twice(table: AuditTable, entries: Any) -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise StorageFailed("can't be reached now", field="database")
        await add(table, entries)

    monkeypatch.setattr(AuditTable, "add", fails_twice)
    monkeypatch.setattr(log, "TRY_AGAIN_S", 0.001)
    monkeypatch.setattr(log, "MAX_PENDING", 2)
    with caplog.at_level(logging.ERROR):
        for number in range(5):
            audit.record("ann", HERE, "put", str(number))
        assert await subjects(audit) == ["1", "0"]
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "2 entries of the audit log wait for the database",
        "3 entries of the audit log were lost",
    ]
