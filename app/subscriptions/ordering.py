"""Sorts thousands of subscriptions in slices, so that nobody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from heapq import merge
from itertools import islice
from typing import Any, Final, TypeVar

Item = TypeVar("Item")

PORTION: Final = 500
"""Sorted at once: some 2 ms."""


async def in_order(
    items: Iterable[Item],
    key: Callable[[Item], Any],
    passes: Callable[[Item], bool] = lambda _: True,
    *,
    reverse: bool = False,
) -> list[Item]:
    """Returns the items that pass by their keys; those with the same key keep their order."""
    iterator = iter(items)
    portions: list[list[tuple[Any, int, Item]]] = []
    number = 0
    while portion := list(islice(iterator, PORTION)):
        sign = -1 if reverse else 1
        keyed = [
            (key(one), sign * at, one) for at, one in enumerate(portion, number) if passes(one)
        ]
        keyed.sort(key=_key, reverse=reverse)
        number += len(portion)
        portions.append(keyed)
        await asyncio.sleep(0)
    merged = merge(*portions, key=_key, reverse=reverse)
    found: list[Item] = []
    while taken := [one for _, _, one in islice(merged, PORTION)]:
        found += taken
        await asyncio.sleep(0)
    return found


def _key(keyed: tuple[Any, int, Any]) -> tuple[Any, int]:
    return keyed[0], keyed[1]
