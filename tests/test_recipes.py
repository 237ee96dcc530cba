"""Follows the recipes of CONTRIBUTING.md with small examples, as far as a test can."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

import pytest

from tests.support.amqp import Client, make_broker
from warrenmq.app.configuration import loading
from warrenmq.app.configuration.descriptions import help_text
from warrenmq.app.configuration.settings import Settings
from warrenmq.app.routes.api import router
from warrenmq.core.definitions import decode as decoding
from warrenmq.core.definitions.fields import FieldReader, text
from warrenmq.core.definitions.keys import DefinitionKind, key_of
from warrenmq.core.errors import ChannelError, ConfigError
from warrenmq.core.message.model import Table
from warrenmq.core.queue import arguments, registry
from warrenmq.core.queue.classic import ClassicQueue
from warrenmq.core.queue.rules import Rules
from warrenmq.core.route.binding import Binding
from warrenmq.core.route.exchange import Exchange
from warrenmq.core.route.registry import exchange_types
from warrenmq.core.route.route import Destination

ROOT = Path(__file__).parents[1]


class LastBoundExchange(Exchange):
    """An exchange that routes to its newest destination."""

    def match(self, routing_key: str, headers: object) -> Sequence[Destination]:
        return tuple(self.destinations)[-1:]

    def attach(self, binding: Binding) -> None: ...
    def detach(self, binding: Binding) -> None: ...


def test_an_exchange_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(exchange_types, "x-last-bound", LastBoundExchange)
    client = Client(make_broker())
    client.call("Exchange.Declare", exchange="x", exchange_type="x-last-bound", durable=True)
    for queue in ("first", "last"):
        client.declare(queue)
        client.call("Queue.Bind", queue=queue, exchange="x")
    client.publish(b"1", exchange="x")
    client.call("Queue.Unbind", queue="last", exchange="x")
    client.publish(b"2", exchange="x")
    assert [client.messages(queue) for queue in ("first", "last")] == [1, 1]


def test_a_queue_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    read = arguments._rules

    def read_more(reader: Any, *, quorum: bool) -> Rules:
        pairs = reader.integer("x-max-pairs", 1, 10)
        rules = read(reader, quorum=quorum)
        return rules if pairs is None else replace(rules, max_length=2 * pairs)

    classic = arguments.OF_TYPE["classic"] | {"x-max-pairs"}
    monkeypatch.setitem(arguments.OF_TYPE, "classic", classic)
    monkeypatch.setattr(arguments, "KNOWN", arguments.KNOWN | {"x-max-pairs"})
    monkeypatch.setattr(arguments, "_rules", read_more)
    monkeypatch.setattr(arguments, "_read_before", {})
    client = Client(make_broker())
    client.declare("q", arguments={"x-max-pairs": 2})
    for number in range(5):
        client.publish(b"%d" % number, routing_key="q")
    assert client.messages("q") == 4
    refused: list[Table] = [{"x-max-pairs": 11}, {"x-queue-type": "quorum", "x-max-pairs": 2}]
    for table in refused:
        with pytest.raises(ChannelError, match="x-max-pairs"):
            arguments.read_rules(arguments.DeclaredArguments("r", "/"), table)


class GreetedQueue(ClassicQueue):
    """A queue with a message that nobody has published."""

    __slots__ = ()

    @property
    def ready_count(self) -> int:
        return super().ready_count + 1


def test_a_queue_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.queue_types, "greeted", GreetedQueue)
    monkeypatch.setitem(arguments.OF_TYPE, "greeted", arguments.OF_TYPE["classic"])
    client = Client(make_broker())
    client.declare("q", arguments={"x-queue-type": "greeted"}, durable=True)
    assert client.messages("q") == 1


def test_a_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class MoreSettings(Settings, frozen=True, kw_only=True):
        nap_s: Annotated[int, "Seconds of sleep."] = 20

    monkeypatch.setattr(loading, "Settings", MoreSettings)
    monkeypatch.setattr(loading, "NAMES", MoreSettings.__struct_fields__)
    hints = get_type_hints(MoreSettings, localns=locals(), include_extras=True)
    monkeypatch.setattr(loading, "TYPES", hints)
    (tmp_path / "warren.toml").write_text("nap_s = 1\n")
    file = {"WARREN_CONFIG": str(tmp_path / "warren.toml")}
    sources: list[dict[str, str]] = [{}, file, file | {"WARREN_NAP_S": "2"}]
    assert [loading.load({}, one).nap_s for one in sources] == [20, 1, 2]  # type: ignore[attr-defined]
    assert help_text(hints["nap_s"]) == "Seconds of sleep."
    with pytest.raises(ConfigError, match="environment: nap_s: "):
        loading.load({}, {"WARREN_NAP_S": "long"})


def test_every_table_of_routes_is_listed() -> None:
    files = (ROOT / "app" / "routes" / "api").glob("*.py")
    modules = [importlib.import_module(f"warrenmq.app.routes.api.{file.stem}") for file in files]
    found = [module.ROUTES for module in modules if hasattr(module, "ROUTES")]
    assert all(any(table is listed for listed in router.TABLES) for table in found)


WITH_COLOUR = b"\x03"


class ColouredVhost(NamedTuple):
    """A virtual host with a field more, in a version of its own."""

    name: str
    colour: str

    @classmethod
    def decode(cls, key: FieldReader, value: FieldReader) -> ColouredVhost:
        return cls(key.text(), value.text() if value.version >= WITH_COLOUR else "")


def test_an_on_disk_record(monkeypatch: pytest.MonkeyPatch) -> None:
    key, value = key_of(DefinitionKind.VHOST, "v"), WITH_COLOUR + text("red")
    with pytest.raises(decoding.NewerDefinition, match="has version 3, this Warren knows up to 2"):
        decoding.decode(key, value)
    monkeypatch.setitem(decoding._NEWEST, DefinitionKind.VHOST, WITH_COLOUR)
    monkeypatch.setitem(decoding._DECODERS, DefinitionKind.VHOST, ColouredVhost.decode)
    found: object = decoding.decode(key, value)
    assert found == ColouredVhost("v", "red")
    older: object = decoding.decode(key, b"\x01")
    assert older == ColouredVhost("v", "")

    for cut in range(1, len(value)):
        with pytest.raises(decoding.BadDefinition, match="is damaged"):
            decoding.decode(key, value[:cut])
