"""When a feed wants to be polled, whatever its elements say."""

from __future__ import annotations

import pytest

from warrenmq.hub.formats.hints import read_hints
from warrenmq.hub.formats.read_feed import PollHints

NONE = PollHints()


@pytest.mark.parametrize(
    ("texts", "hints"),
    [
        ((" 60 ", [], [], "", ""), PollHints(ttl_s=3_600)),
        (("", ["24", "5", "05", "25", "x"], [], "", ""), PollHints(skip_hours=(0, 5))),
        (("", [], ["Sunday", " monday", "Yesterday"], "", ""), PollHints(skip_days=(0, 6))),
        (("", [], [], "weekly", "7"), PollHints(update_interval_s=86_400)),
        (("", [], [], "", "2"), PollHints(update_interval_s=43_200)),
        (("0", list(map(str, range(24))), [], "sometimes", ""), NONE),
        (("-5", [], [], "", ""), NONE),
        (("9" * 20, [], [], "", ""), NONE),
    ],
)
def test_hints(texts: tuple[str, list[str], list[str], str, str], hints: PollHints) -> None:
    assert read_hints(*texts) == hints
