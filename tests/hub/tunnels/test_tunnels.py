"""Labels, leases and limits that take longer than a test over HTTP may."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.tunnels import TOKEN
from warrenmq.core.clock import ManualClock
from warrenmq.hub.errors import BadRequest
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.owner_rights import AllowAll
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.tasks import Tasks
from warrenmq.hub.tunnels.errors import (
    EnrolmentRefused,
    EnrolsTooOften,
    NoApplicationReply,
    NoPoll,
    ReleasedTunnel,
    TunnelError,
    TunnelFull,
    UnknownTunnel,
)
from warrenmq.hub.tunnels.pending_request import TunnelRequest
from warrenmq.hub.tunnels.reply import Reply
from warrenmq.hub.tunnels.settings import TunnelSettings
from warrenmq.hub.tunnels.tunnel import Tunnel
from warrenmq.hub.tunnels.tunnels import Tunnels

LIMITS = TunnelSettings(
    is_open=True, max_bytes=100, max_labels=3, max_labels_per_owner=2, poll_wait_s=0.01,
    seen_poll_wait_s=0.02, reply_wait_s=0.01,
)  # fmt: skip


class Poll:
    """Keeps what it took; a lost one gives it back."""

    def __init__(self, tunnel: Tunnel, poll_id: str, *, is_lost: bool = False) -> None:
        self.id = poll_id
        self.taken: list[TunnelRequest] = []
        self.ended: list[TunnelError | None] = []
        self._tunnel = tunnel
        self._is_lost = is_lost

    def take(self, request: TunnelRequest) -> None:
        if self._is_lost:
            self._tunnel.give_back(request)
        else:
            self.taken.append(request)

    def end(self, error: TunnelError | None) -> None:
        self.ended.append(error)

    def over(self, request: TunnelRequest) -> None:
        self.taken.remove(request)


class World:
    """Tunnels on a clock of the test's own, in a directory that outlives them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.clock = ManualClock()
        self.settings = LIMITS
        self.rights = AllowAll()
        self.callbacks: list[str] = []
        """Those of active subscriptions."""

    async def start(self) -> None:
        self._tasks = Tasks()
        self._storage = Storage(self._directory, None, Sealer(self._directory / "key"))
        self.tunnels = Tunnels(
            self._storage, self.settings, self.clock, self._tasks, self.rights, self._end_callbacks
        )
        await self.tunnels.start()

    async def stop(self) -> None:
        self.tunnels.stop()
        await self._tasks.stop()
        await self._storage.close()

    async def _end_callbacks(self, is_there: Callable[[str], bool]) -> None:
        self.callbacks = [url for url in self.callbacks if not is_there(url)]

    async def enrol(self, name: str, token: str = TOKEN, owner: str = "tony") -> Tunnel:
        tunnel, _, _ = await self.tunnels.enrol(name, token, None, owner)
        return tunnel

    async def after(self, seconds: float) -> None:
        self.clock.advance(int(seconds * 1000))
        await self.tunnels.end_leases()

    def ask(self, tunnel: Tunnel, message: bytes = b"x") -> asyncio.Future[Reply | TunnelError]:
        done: asyncio.Future[Reply | TunnelError] = asyncio.get_running_loop().create_future()
        tunnel.ask(TunnelRequest(message, "192.0.2.1:1", done.set_result, is_head=False))
        return done


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    await world.start()
    yield world
    await world.stop()


class TestLeases:
    async def test_64_a_label_lapses_and_is_restored_for_a_day(self, world: World) -> None:
        tunnel = await world.enrol("ada")
        await world.after(59)
        assert world.tunnels.labels.of("ada") is tunnel
        await world.after(2)
        with pytest.raises(UnknownTunnel, match="no application has this label"):
            world.tunnels.labels.of("ada")
        world.tunnels.restore(world.tunnels.labels.with_token("ada", TOKEN))
        assert world.tunnels.labels.of("ada") is tunnel
        await world.after(61)
        await world.after(86_401)
        assert world.tunnels.labels.all() == []
        with pytest.raises(ReleasedTunnel):
            world.tunnels.labels.with_token("ada", TOKEN)
        await world.after(86_401)
        with pytest.raises(UnknownTunnel, match="not enrolled with this token"):
            world.tunnels.labels.with_token("ada", TOKEN)

    async def test_a_lease_does_not_run_while_a_poll_waits(self, world: World) -> None:
        tunnel = await world.enrol("ada")
        poll = Poll(tunnel, "one")
        tunnel.wait(poll)
        await world.after(1_000)
        tunnel.leave(poll)
        await world.after(59)
        assert world.tunnels.labels.of("ada") is tunnel
        await world.after(2)
        assert tunnel.is_lapsed

    async def test_its_owner_takes_a_lapsed_label_with_another_token(self, world: World) -> None:
        await world.enrol("ada")
        with pytest.raises(EnrolmentRefused, match="another token"):
            await world.enrol("ada", TOKEN + "2")
        await world.after(61)
        with pytest.raises(EnrolmentRefused, match="another user's"):
            await world.enrol("ada", TOKEN + "2", owner="eve")
        again = await world.enrol("ada", TOKEN + "2")
        assert world.tunnels.labels.of("ada") is again
        with pytest.raises(UnknownTunnel):
            world.tunnels.labels.with_token("ada", TOKEN)


class TestNextApplications:
    """Subscriptions of a label's URL end before another application can have the label."""

    async def test_released_and_given_up(self, world: World) -> None:
        other = "http://b.tun.localhost/"
        world.callbacks = ["http://A.tun.localhost:80/in", other]
        await world.tunnels.release(await world.enrol("a"))
        assert world.callbacks == [other]
        await world.enrol("b")
        await world.after(61)
        assert world.callbacks == [other]
        await world.after(86_401)
        assert world.callbacks == []

    async def test_another_user_waits(self, world: World) -> None:
        """For what was under way when the label was released: it ends when they get the label."""
        await world.tunnels.release(await world.enrol("a"))
        world.callbacks = ["http://a.tun.localhost/"]
        await world.stop()
        await world.start()
        with pytest.raises(EnrolmentRefused, match="another user's until just now; it is free in"):
            await world.enrol("a", owner="eve")
        await world.after(601)
        await world.enrol("a", owner="eve")
        assert world.callbacks == []

    async def test_an_anonymous_client_with_another_token(self, world: World) -> None:
        await world.enrol("a", owner="")
        world.callbacks = ["http://a.tun.localhost/"]
        await world.after(61)
        await world.enrol("a", owner="")
        assert len(world.callbacks) == 1
        await world.after(61)
        await world.enrol("a", TOKEN + "2", owner="")
        assert world.callbacks == []


class TestRestarts:
    async def test_labels_survive_with_digests_only(self, world: World, tmp_path: Path) -> None:
        tunnel = await world.enrol("ada")
        await world.tunnels.change(tunnel, None, "90")
        await world.enrol("left")
        await world.tunnels.release(world.tunnels.labels.of("left"))
        await world.stop()
        assert TOKEN.encode() not in (tmp_path / "hub.sqlite3").read_bytes()
        await world.start()
        (found,) = world.tunnels.labels.all()
        assert world.tunnels.labels.with_token("ada", TOKEN) is found
        with pytest.raises(ReleasedTunnel):
            world.tunnels.labels.of("left")
        assert (found.registration.owner, found.registration.lease_s) == ("tony", 90)

    async def test_a_block_survives_and_ends(self, world: World) -> None:
        await world.tunnels.release(await world.enrol("ada"), block_s=100_000)
        await world.stop()
        await world.start()
        await world.after(90_000)
        for label, owner in (("ada", "eve"), ("ada", "tony"), ("other", "tony")):
            with pytest.raises(EnrolmentRefused, match="an administrator has closed 'ada'"):
                await world.enrol(label, owner=owner)
        await world.enrol("other", owner="eve")
        await world.after(10_001)
        await world.enrol("ada")

    async def test_anonymous_ones_end_with_development_mode(self, world: World) -> None:
        await world.enrol("anyone", owner="")
        await world.enrol("tonys")
        await world.stop()
        world.settings = replace(LIMITS, is_open=False)
        await world.start()
        assert [one.registration.label for one in world.tunnels.labels.all()] == ["tonys"]

    async def test_labels_of_a_deleted_user(self, world: World) -> None:
        tunnel = await world.enrol("ada")
        poll = Poll(tunnel, "one")
        tunnel.wait(poll)
        world.tunnels.forget_owner("tony")
        while world.tunnels.labels.all():
            await asyncio.sleep(0)
        assert [error.status for error in poll.ended if error is not None] == [410]

    async def test_the_label_of_a_user_who_was_deleted_meanwhile(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(AllowAll, "owner_refusal", lambda *_: "gone")
        with pytest.raises(EnrolmentRefused, match="deleted"):
            await world.enrol("ada")
        assert not world.tunnels.labels.all()


class TestLimits:
    async def test_labels(self, world: World) -> None:
        for name in ("a", "b"):
            await world.enrol(name)
        with pytest.raises(EnrolmentRefused) as one:
            await world.enrol("c")
        assert one.value.limit == "2 of one user"
        await world.enrol("c", owner="eve")
        with pytest.raises(EnrolmentRefused) as all_:
            await world.enrol("d", owner="eve")
        assert all_.value.limit == "3 in all"

    async def test_enrolments(self, world: World) -> None:
        for _ in range(1_000):
            await world.enrol("a")
        with pytest.raises(EnrolsTooOften):
            await world.enrol("a")
        await world.enrol("b", owner="eve")
        await world.after(0.02)
        await world.enrol("a")

    @pytest.mark.parametrize("token", ["-", "a" * 21, "a/" * 11, "ä" * 22])
    async def test_tokens_that_can_be_guessed(self, world: World, token: str) -> None:
        with pytest.raises(BadRequest, match="token: can't be used"):
            await world.enrol("a", token)

    async def test_memory_of_an_owner_and_of_all(self, world: World) -> None:
        """A part of 100 bytes; what is the first of its owner fits in any case."""
        one, other = await world.enrol("a"), await world.enrol("b")
        hers = await world.enrol("c", owner="eve")
        world.ask(one, bytes(20))
        with pytest.raises(TunnelFull, match="the tunnels of its owner"):
            world.ask(other, bytes(6))
        asked = world.ask(hers, bytes(80))
        with pytest.raises(TunnelFull, match="all tunnels"):
            world.ask(other, bytes(5))
        assert isinstance(await asked, NoPoll)
        world.ask(other, bytes(5))


class TestRequests:
    async def test_a_lost_poll_and_the_order(self, world: World) -> None:
        """What a lost poll took is the next one's, before later requests."""
        tunnel = await world.enrol("a")
        world.ask(tunnel, b"1")
        world.ask(tunnel, b"2")
        tunnel.wait(Poll(tunnel, "lost", is_lost=True))
        polls = [Poll(tunnel, name) for name in ("one", "two")]
        for poll in polls:
            tunnel.wait(poll)
        assert [poll.taken[0].message for poll in polls] == [b"1", b"2"]

    async def test_without_a_poll_and_without_a_reply(self, world: World) -> None:
        tunnel = await world.enrol("a")
        assert isinstance(await world.ask(tunnel), NoPoll)
        tunnel.wait(Poll(tunnel, "one"))
        asked = world.ask(tunnel)
        assert isinstance(await asked, NoApplicationReply)
        with pytest.raises(TunnelError, match="its time is over"):
            tunnel.request("one")

    async def test_a_label_that_lapses_answers_waiting_requests(self, world: World) -> None:
        world.settings = replace(LIMITS, poll_wait_s=60.0)
        await world.stop()
        await world.start()
        tunnel = await world.enrol("a")
        asked = world.ask(tunnel)
        await world.after(61)
        assert isinstance(await asked, UnknownTunnel)


async def test_a_change_after_a_release_is_refused(world: World) -> None:
    tunnel = await world.enrol("ada")
    released, changed = await asyncio.gather(
        world.tunnels.release(tunnel),
        world.tunnels.change(tunnel, None, "90"),
        return_exceptions=True,
    )
    assert released is None
    assert isinstance(changed, ReleasedTunnel)
    assert world.tunnels.labels.all() == []


async def test_a_block_holds_if_the_label_was_released_before(world: World) -> None:
    """An application that releases its label just before an administrator does gets no other."""
    tunnel = await world.enrol("ada")
    await asyncio.gather(world.tunnels.release(tunnel), world.tunnels.release(tunnel, block_s=60))
    with pytest.raises(EnrolmentRefused, match="an administrator has closed 'ada'"):
        await world.enrol("other")
