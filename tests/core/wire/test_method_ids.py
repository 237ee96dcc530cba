"""Each name leads to the method that AMQP gives it, and its frame begins with its octets."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from warrenmq.core.wire import method_ids
from warrenmq.core.wire.frames import method_frame

NUMBERS = {
    name: number
    for name, number in vars(method_ids).items()
    if isinstance(number, int) and number and not name.startswith("ACCESS_")
}


@pytest.mark.parametrize("name", NUMBERS)
def test_names_are_those_of_the_protocol(name: str) -> None:
    method: Any = commands.INDEX_MAPPING[NUMBERS[name]]
    assert name.replace("_", "") == method.name.replace(".", "").upper()


@pytest.mark.parametrize("name", NUMBERS)
def test_a_frame_begins_with_the_octets(name: str) -> None:
    payload = method_frame(1, NUMBERS[name])[7:-1]
    assert payload == method_ids.octets(NUMBERS[name])
