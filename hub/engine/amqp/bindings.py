"""Makes and removes bindings, and counts those that match a key."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, cast

from aiormq.abc import AbstractChannel

from ....core.message.model import Table
from ....core.route.automaton import PatternAutomaton
from ....core.route.topic import normal_form
from ..port import BindingSpec


def arguments_of(table: Table) -> Any:
    return cast(Any, dict(table))


def bind(channel: AbstractChannel, binding: BindingSpec) -> Awaitable[Any]:
    method = channel.queue_bind if binding.destination_is_queue else channel.exchange_bind
    ends = binding.destination, binding.source, binding.routing_key
    return method(*ends, arguments=arguments_of(binding.arguments))


def unbind(channel: AbstractChannel, binding: BindingSpec) -> Awaitable[Any]:
    method = channel.queue_unbind if binding.destination_is_queue else channel.exchange_unbind
    ends = binding.destination, binding.source, binding.routing_key
    return method(*ends, arguments=arguments_of(binding.arguments))


def count_matching(type_name: str, binding_keys: Sequence[str], routing_key: str) -> int:
    """Returns how many bindings of an exchange match the key: all, unless it is direct or topic."""
    if type_name == "direct":
        return binding_keys.count(routing_key)
    if type_name != "topic":
        return len(binding_keys)
    patterns = [normal_form(key) for key in binding_keys]
    automaton = PatternAutomaton()
    for pattern in set(patterns):
        automaton.add(pattern)
    matching = set(automaton.match(routing_key))
    return sum(pattern in matching for pattern in patterns)
