"""Names are asked of real name servers, and one that is silent holds up nobody else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping

import pytest

from tests.hub.support import until
from tests.support.dns import SILENT, Name, Zone, dns
from tests.support.ports import free_port
from warrenmq.hub.errors import NotResolved
from warrenmq.hub.guard import resolver
from warrenmq.hub.guard.address_cache import AddressCache
from warrenmq.hub.guard.failures import NoAddress
from warrenmq.hub.guard.lookups import Lookups, Purpose


@contextlib.asynccontextmanager
async def asking(
    names: Mapping[str, list[str] | Name], within_s: float = 5.0, at_once: int = 500
) -> AsyncIterator[tuple[Lookups, Zone]]:
    with dns(names) as zone:
        lookups = Lookups(Purpose.VERIFY, [zone.server], AddressCache(), within_s, at_once)
        yield lookups, zone
        await lookups.close()


async def found(lookups: Lookups, host: str) -> set[str]:
    return {str(address) for address in await lookups.of(host)}


async def test_addresses_of_both_versions_over_both_transports() -> None:
    many = [f"8.8.8.{number}" for number in range(60)]
    names: Mapping[str, list[str] | Name] = {
        "both.example": ["8.8.8.8", "2a00::1"],
        "four.example": Name(["8.8.8.8"], silent=(28,)),
        "many.example": many,
    }
    async with asking(names) as (lookups, _):
        assert await found(lookups, "both.example") == {"8.8.8.8", "2a00::1"}
        assert await found(lookups, "four.example") == {"8.8.8.8"}
        assert await found(lookups, "many.example") == set(many)  # too long for a datagram
        assert "127.0.0.1" in await found(lookups, "localhost")
        with pytest.raises(NoAddress, match="not found"):
            await lookups.of("none.example")


async def test_one_query_for_all_while_the_record_is_valid() -> None:
    async with asking({"a.example": ["8.8.8.8"]}) as (lookups, zone):
        await asyncio.gather(*(lookups.of("a.example") for _ in range(3)))
        await lookups.of("a.example")
        assert zone.asked == {"a.example": 1}


async def test_a_channel_is_replaced_after_many_queries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resolver, "QUERIES_PER_CHANNEL", 2)
    async with asking({"*.example": Name(["8.8.8.8"], ttl_s=0)}) as (lookups, zone):
        asked = [f"{number}.example" for number in range(7)]
        await asyncio.gather(*map(lookups.of, asked))
        assert zone.asked == dict.fromkeys(asked, 1)


async def test_silent_names_delay_their_own_purpose() -> None:
    async with asking({"*.silent.example": SILENT, "a.example": ["8.8.8.8"]}, 0.6, 10) as (
        anonymous,
        zone,
    ):
        delivering = Lookups(Purpose.DELIVER, [zone.server], AddressCache(), 5.0)
        async with at_the_time(0):  # else the first give way to one whose time ends later
            asked = [
                asyncio.create_task(anonymous.of(f"{number}.silent.example"))
                for number in range(30)
            ]
        await until(lambda: len(zone.asked) == 10, "question")
        assert await found(delivering, "a.example") == {"8.8.8.8"}
        results = await asyncio.gather(*asked, return_exceptions=True)
        silent = [one for one in results if isinstance(one, NoAddress)]
        busy = [one for one in results if isinstance(one, NotResolved)]
        assert (len(silent), len(busy)) == (10, 20)
        assert "too many names" in str(busy[0]) and busy[0].limit == "10 for verifications"
        # What nobody waits for any more is not asked.
        with contextlib.suppress(NotResolved):
            await anonymous.of("a.example")
        await until(lambda: _resolves(anonymous), "lookup of another name")
        assert len(zone.asked) == 11
        await delivering.close()


async def test_a_late_query_is_not_the_fault_of_the_name() -> None:
    async with asking({"*.example": SILENT}, 0.9, at_once=1) as (lookups, zone):
        await lookups.of("localhost")  # c-ares is loaded
        first = asyncio.create_task(lookups.of("first.example"))
        await until(lambda: bool(zone.asked), "question")
        async with at_the_time(-0.5):
            second = asyncio.create_task(lookups.of("second.example"))
        zone.names["first.example"] = Name(["8.8.8.8"])  # found when it is asked again
        await first
        with pytest.raises(NotResolved, match="too many names"):
            await second


@contextlib.asynccontextmanager
async def at_the_time(after_s: float) -> AsyncIterator[None]:
    """What is begun within begins at the same time, so many seconds from now."""
    loop = asyncio.get_running_loop()
    now_s = loop.time() + after_s
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "time", lambda: now_s)
        yield
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def _resolves(lookups: Lookups) -> bool:
    try:
        return bool(await lookups.of("a.example"))
    except NotResolved:
        return False


async def test_an_unreachable_name_server_is_not_the_fault_of_the_name() -> None:
    port = free_port()
    lookups = Lookups(Purpose.DELIVER, [f"127.0.0.1:{port}"], AddressCache(), 5.0)
    with pytest.raises(NotResolved, match="no name server could be asked"):
        await lookups.of("a.example")
    with dns({"a.example": ["8.8.8.8"]}, port):
        await until(lambda: _resolves(lookups), "address from a server that is back")
    await lookups.close()


async def test_queries_end_with_the_hub() -> None:
    with dns({"silent.example": SILENT}) as zone:
        lookups = Lookups(Purpose.DELIVER, [zone.server], AddressCache(), 60.0)
        asked = asyncio.create_task(lookups.of("silent.example"))
        await until(lambda: bool(zone.asked), "question")
        await lookups.close()
        await asyncio.wait([asked])
        assert asked.cancelled() or isinstance(asked.exception(), NotResolved)
