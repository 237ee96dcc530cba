"""The arguments of exchanges that drop what they have seen."""

from __future__ import annotations

import pytest

from tests.core.route.support import exchange
from warrenmq.core.errors import ChannelError
from warrenmq.core.message.deduplication import CACHE_SIZE_MAX, CACHE_TTL_MAX_MS, Deduplication
from warrenmq.core.message.model import FieldValue
from warrenmq.core.queue.arguments import Declared, read_rules
from warrenmq.core.route.registry import exchange_types


@pytest.mark.parametrize("kind", sorted(exchange_types))
def test_they_go_with_any_type(kind: str) -> None:
    made = exchange(kind, x_message_deduplication=True, x_delayed_type="direct")
    assert made.deduplication == Deduplication(128, None, "x-deduplication-header")


def test_all_of_them() -> None:
    made = exchange(
        "direct", x_message_deduplication=True, x_cache_size=5, x_cache_ttl=9,
        x_deduplication_header="id",
    )  # fmt: skip
    assert made.deduplication == Deduplication(5, 9, "id")
    assert exchange("direct", x_message_deduplication=False, x_cache_size=5).deduplication is None


BAD: list[tuple[str, FieldValue, str]] = [
    ("x-message-deduplication", "true", "longstr given, a boolean is needed"),
    ("x-message-deduplication", 1, "a boolean is needed"),
    ("x-cache-size", 0, f"0 is out of range 1 to {CACHE_SIZE_MAX}"),
    ("x-cache-size", -1, "-1 is out of range"),
    ("x-cache-size", CACHE_SIZE_MAX + 1, f"{CACHE_SIZE_MAX + 1} is out of range"),
    ("x-cache-size", 2**62, "is out of range"),
    ("x-cache-size", "5", "longstr given, a whole number is needed"),
    ("x-cache-ttl", -1, f"-1 is out of range 0 to {CACHE_TTL_MAX_MS}"),
    ("x-cache-ttl", CACHE_TTL_MAX_MS + 1, "is out of range"),
    ("x-cache-ttl", 1.5, "double given, a whole number is needed"),
    ("x-deduplication-header", "", "the name of a header is needed"),
]


@pytest.mark.parametrize(("argument", "value", "text"), BAD)
@pytest.mark.parametrize("wanted", [True, False])
def test_bad_ones_are_refused_for_exchanges_and_queues(
    argument: str, value: FieldValue, text: str, wanted: bool
) -> None:
    """LavinMQ dies of a huge cache; here it is refused."""
    table: dict[str, FieldValue] = {"x-message-deduplication": wanted} | {argument: value}
    with pytest.raises(ChannelError) as of_exchange:
        exchange("direct", **{name.replace("-", "_"): given for name, given in table.items()})
    with pytest.raises(ChannelError) as of_queue:
        read_rules(Declared("q", "/"), table)
    for refused, where in ((of_exchange, "exchange 'x'"), (of_queue, "queue 'q'")):
        assert refused.value.code == 406
        assert f"invalid arg '{argument}' for {where} in vhost '/': " in str(refused.value)
        assert text in str(refused.value)


def test_the_name_of_the_header_is_text() -> None:
    with pytest.raises(ChannelError, match="x-deduplication-header"):
        exchange("direct", x_message_deduplication=True, x_deduplication_header=5)
