"""Frees reserved names that an earlier version let clients take.

Done before definitions become queues and exchanges: an object with a reserved name that the hub
would not have declared is renamed. It keeps its messages and its bindings, but for one from the
exchange of the same name, which is the hub's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from ..auth.reserved import PREFIX, is_reserved
from ..queue.names import INNER_MARK
from .decode import BadDefinition, decode
from .keys import DefinitionKind, key_of
from .kinds import BindingDefinition, Definition, ExchangeDefinition, QueueDefinition

if TYPE_CHECKING:
    from ..store.port import Store

_RESERVED: Final = PREFIX.encode()
NEW_PREFIX: Final = "renamed."
_MAX_NAME_BYTES: Final = 255 - len(NEW_PREFIX) - 8
_KINDS: Final = {
    DefinitionKind.EXCHANGE.value,
    DefinitionKind.QUEUE.value,
    DefinitionKind.BINDING.value,
}

logger = logging.getLogger(__name__)

Named = ExchangeDefinition | QueueDefinition


class _Place(NamedTuple):
    vhost: str
    is_exchange: bool
    name: str


def rename_reserved(store: Store, is_own: Callable[[Named], bool]) -> None:
    """Renames each exchange and queue of a reserved name for which `is_own` is false.

    One that can't be decoded is left to `restore`, which sets it aside.
    """
    found = _reserved(store.definitions)
    renamed: dict[_Place, str] = {}
    for definition in found.values():
        if (
            isinstance(definition, Named)
            and is_reserved(definition.name)
            and not is_own(definition)
        ):
            new_name = _free_name(store.definitions, definition)
            renamed[_place(definition)] = new_name
            logger.warning(
                "%s has a reserved name ('%s*') but was not declared by the hub; it "
                "was renamed to '%s' with its messages; consume or delete it there",
                definition.description(), PREFIX, new_name,
            )  # fmt: skip
    if not renamed:
        return
    with store.together():
        for key, definition in found.items():
            changed = _changed(definition, renamed)
            if changed != definition:
                store.define(key, None)
                if changed is not None:
                    store.define(changed.key(), changed.value())


def _reserved(definitions: Mapping[bytes, bytes]) -> dict[bytes, Definition]:
    """Returns the definitions that may contain a reserved name."""
    found: dict[bytes, Definition] = {}
    for key, value in definitions.items():
        if key and key[0] in _KINDS and _RESERVED in key:
            with suppress(BadDefinition):
                found[key] = decode(key, value)
    return found


def _place(definition: Named) -> _Place:
    return _Place(definition.vhost, isinstance(definition, ExchangeDefinition), definition.name)


def _free_name(definitions: Mapping[bytes, bytes], definition: Named) -> str:
    short = definition.name.encode()[:_MAX_NAME_BYTES].decode(errors="ignore")
    kind = (
        DefinitionKind.EXCHANGE
        if isinstance(definition, ExchangeDefinition)
        else DefinitionKind.QUEUE
    )
    names = _candidates(NEW_PREFIX + short)
    return next(name for name in names if key_of(kind, definition.vhost, name) not in definitions)


def _candidates(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1


def _changed(definition: Definition, renamed: Mapping[_Place, str]) -> Definition | None:
    """Returns the definition under its new name; None for a binding that ends."""
    match definition:
        case ExchangeDefinition():
            return definition._replace(name=renamed.get(_place(definition), definition.name))
        case QueueDefinition():
            kind, mark, exchange = definition.name.partition(INNER_MARK)
            if not mark:
                return definition._replace(name=renamed.get(_place(definition), definition.name))
            exchange = renamed.get(_Place(definition.vhost, True, exchange), exchange)
            return definition._replace(name=kind + mark + exchange)
        case BindingDefinition():
            return _rebound(definition, renamed)
    return definition


def _rebound(found: BindingDefinition, renamed: Mapping[_Place, str]) -> Definition | None:
    source = renamed.get(_Place(found.vhost, True, found.source), found.source)
    target = renamed.get(_Place(found.vhost, found.to_exchange, found.destination))
    if target is not None and found.destination == source:
        return None
    return found._replace(source=source, destination=target or found.destination)
