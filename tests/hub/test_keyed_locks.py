from __future__ import annotations

import asyncio

from warrenmq.hub.keyed_locks import KeyedLocks


async def test_a_key_has_one_holder_and_is_dropped_when_released() -> None:
    locks: KeyedLocks[str] = KeyedLocks()
    log: list[str] = []
    gate = asyncio.Event()

    async def work(key: str, name: str) -> None:
        async with locks.of(key):
            log.append(f"{name} begins")
            await gate.wait()
            log.append(f"{name} ends")

    tasks = [asyncio.create_task(work(*who)) for who in (("a", "1"), ("a", "2"), ("b", "3"))]
    await asyncio.sleep(0)
    assert log == ["1 begins", "3 begins"] and len(locks) == 2
    gate.set()
    await asyncio.gather(*tasks)
    assert log.index("1 ends") < log.index("2 begins")
    del tasks
    assert len(locks) == 0
