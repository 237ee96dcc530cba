"""Finds the objects that an object keeps alive, for tests that bound memory."""

from __future__ import annotations

import gc
from types import BuiltinFunctionType, FunctionType, ModuleType

_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType)


def held(root: object) -> list[object]:
    """Returns all objects that an object refers to, directly or not, without classes and code."""
    found, waiting = dict[int, object](), [root]
    while waiting:
        one = waiting.pop()
        if id(one) not in found and not isinstance(one, _SHARED):
            found[id(one)] = one
            waiting += gc.get_referents(one)
    return list(found.values())


def held_of(root: object, kind: type) -> int:
    """Returns the number of these objects that are of a type."""
    return sum(isinstance(one, kind) for one in held(root))
