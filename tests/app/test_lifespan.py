"""What of the settings becomes a limit of the broker."""

from __future__ import annotations

from warrenmq.app.config import Settings
from warrenmq.app.lifespan import _limits
from warrenmq.core.broker import Limits


def test_defaults_are_the_brokers() -> None:
    assert _limits(Settings()) == Limits()


def test_every_limit_can_be_set() -> None:
    settings = Settings(
        frame_max=8192, channel_max=7, heartbeat_s=5, max_message_bytes=9, consumer_timeout=0,
        strict_arguments=True,
    )  # fmt: skip
    assert _limits(settings) == Limits(
        frame_max=8192, channel_max=7, heartbeat_s=5, max_message_bytes=9, consumer_timeout_ms=0,
        strict_arguments=True,
    )  # fmt: skip
