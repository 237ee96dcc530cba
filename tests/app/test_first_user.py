"""Warnings about `default_user` and `default_pass` on an existing data directory."""

from __future__ import annotations

import pytest

from tests.support.users import guest_users
from warrenmq.app.configuration.first_user import warn_of_unused
from warrenmq.app.configuration.settings import Settings


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (Settings(default_pass="hunter-2"), "user 'guest' has another password"),
        (Settings(default_user="admin", default_pass="hunter-2"), "it has no user 'admin'"),
        (Settings(default_user="tony", default_pass="s3cret"), ""),
        (Settings(), ""),
    ],
)
async def test_unused_settings_of_the_first_user_are_logged(
    caplog: pytest.LogCaptureFixture, settings: Settings, reason: str
) -> None:
    users = guest_users()
    users.add("tony", "s3cret")
    await warn_of_unused(settings, users)
    assert ("have no effect" in caplog.text) is bool(reason)
    assert reason in caplog.text
    assert "hunter-2" not in caplog.text
