"""Matches routing keys with the keys of bindings, as RabbitMQ does."""

from __future__ import annotations

from collections.abc import Sequence

from ....core.route.automaton import PatternAutomaton
from ....core.route.topic import normal_form


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
