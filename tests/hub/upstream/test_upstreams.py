"""The life of an upstream: asked for, verified, renewed, denied, ended, over restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.hub.support import BASE_URL, House, until
from tests.support.http import Answer
from tests.support.other_hub import OtherHub
from warrenmq.core.clock import ManualClock
from warrenmq.hub.errors import BadRequest, CallbackRefused, StorageFailed
from warrenmq.hub.owner_rights import EverybodyMay
from warrenmq.hub.requests import Resource
from warrenmq.hub.upstream.upstream import (
    CALLBACK_PATH,
    Status,
    Upstream,
    UpstreamLeases,
    UpstreamRequest,
)
from warrenmq.hub.upstream.upstreams import Upstreams

NAME = ("/", "feed")


@pytest.fixture
def other() -> Iterator[OtherHub]:
    """It never asks back: the tests do in its place."""
    with OtherHub(asks_back=False) as hub:
        hub.page("/topic", hub.links())
        yield hub


class Desk:
    """One upstream of a house."""

    def __init__(self, house: House, other: OtherHub) -> None:
        self.house = house
        self.other = other

    @property
    def upstreams(self) -> Upstreams:
        return self.house.hub.upstreams

    @property
    def upstream(self) -> Upstream:
        found = self.upstreams.get(*NAME)
        assert found is not None
        return found

    def request(self, **changes: Any) -> UpstreamRequest:
        request = UpstreamRequest(self.other.url + "/topic", "q", "in", BASE_URL, 1_000)
        return msgspec.structs.replace(request, **changes)

    async def put(self, leases: UpstreamLeases | None = None, **changes: Any) -> bool:
        return await self.upstreams.put(
            *NAME, "guest", self.request(**changes), leases or UpstreamLeases()
        )

    async def asked(self, count: int, mode: str = "subscribe") -> dict[str, str]:
        """The form of the last request, when there were so many of its mode."""

        def forms() -> list[dict[str, str]]:
            return [one.form for one in self.other.asked if one.form["hub.mode"] == mode]

        await until(lambda: len(forms()) >= count, f"{mode} {count}: {self.other.asked}")
        return forms()[count - 1]

    async def confirm(self, form: dict[str, str], lease_s: int | None = 1_000) -> bool:
        return await self.upstreams.callbacks.confirm(
            token_of(form), form["hub.mode"], form["hub.topic"], lease_s
        )

    async def active(self, lease_s: int = 1_000) -> dict[str, str]:
        """Subscribed with this lease; gives the form that it was asked with."""
        count = len([one for one in self.other.asked if one.form["hub.mode"] == "subscribe"])
        await self.put()
        form = await self.asked(count + 1)
        assert await self.confirm(form, lease_s)
        return form

    async def status(self, status: Status) -> Upstream:
        await until(lambda: self.upstream.status is status, f"status {status}")
        return self.upstream

    def is_taken(self, form: dict[str, str]) -> bool:
        return self.upstreams.callbacks.receiving(token_of(form)) is not None


def token_of(form: dict[str, str]) -> str:
    return form["hub.callback"].removeprefix(BASE_URL + CALLBACK_PATH)


@pytest.fixture
async def desk(house: House, other: OtherHub) -> Desk:
    return Desk(house, other)


async def stored(house: House) -> list[tuple[str, str]]:
    """Names and statuses of all rows, ending ones too."""
    from warrenmq.hub.upstream.repository import UpstreamRepository

    database = await house.hub._storage.database()
    repository = UpstreamRepository(database, house.sealer)
    return sorted((one.name, one.status.value) for one in await repository.all())


async def test_stored_before_the_hub_is_asked(desk: Desk) -> None:
    """It may ask back before it answers."""
    assert await desk.put() is True
    form = await desk.asked(1)
    assert (await desk.status(Status.PENDING)).leases.pending is not None
    assert await stored(desk.house) == [("feed", "pending")]
    assert not desk.is_taken({**form, "hub.callback": "unknown"})
    assert await desk.confirm(form)
    assert await stored(desk.house) == [("feed", "active")]
    assert desk.is_taken(form)


async def test_content_before_the_verification_is_not_taken(desk: Desk) -> None:
    await desk.put()
    form = await desk.asked(1)
    await desk.status(Status.PENDING)
    assert not desk.is_taken(form)


async def test_asked_for_twice_at_once_is_one(desk: Desk, house: House) -> None:
    assert sorted(await asyncio.gather(desk.put(), desk.put(), desk.put())) == [False, False, True]
    assert len(await stored(house)) == 1


async def test_only_what_is_pending_is_confirmed(desk: Desk) -> None:
    await desk.put()
    form = await desk.asked(1)
    for wrong in (
        {"hub.topic": "other"},
        {"hub.mode": "unsubscribe"},
        {"hub.mode": "denied"},
        {"hub.callback": BASE_URL + CALLBACK_PATH + "unknown"},
    ):
        assert not await desk.confirm({**form, **wrong})
    assert await desk.confirm(form)
    assert not await desk.confirm(form)
    assert not await desk.confirm({**form, "hub.mode": "unsubscribe"})


async def test_renewed_with_a_new_callback_and_the_old_one_left(desk: Desk) -> None:
    first = await desk.active(lease_s=2)
    second = await desk.asked(2)
    assert second["hub.callback"] != first["hub.callback"]
    assert second["hub.secret"] != first["hub.secret"]
    assert desk.upstream.status is Status.ACTIVE
    assert desk.is_taken(first)
    assert await desk.confirm(second, 1_000)
    assert desk.is_taken(second)
    left = await desk.asked(1, "unsubscribe")
    assert left["hub.callback"] == first["hub.callback"]
    assert not desk.is_taken(first)  # its time was over when its hub was told
    assert await desk.confirm(left)
    await until(lambda: desk.upstream.leases.leaving == (), "end of the old line")
    assert desk.upstream.status is Status.ACTIVE


async def test_what_falls_due_while_it_is_down_is_done_at_the_start(
    desk: Desk, house: House
) -> None:
    clock = house.clock = ManualClock()
    await house.restart()
    first = await desk.active(lease_s=1_000)
    await house.restart()
    assert desk.is_taken(first)
    assert len(desk.other.asked) == 1
    await house.hub.stop()
    clock.advance(850_000)
    house.hub = house.make_hub()
    await house.hub.start()
    assert desk.is_taken(first)
    assert len(desk.other.asked) == 1  # nobody is asked who could not ask back yet
    house.hub.reachable()
    second = await desk.asked(2)
    assert desk.upstream.status is Status.ACTIVE
    assert await desk.confirm(second)
    assert desk.is_taken(first) and desk.is_taken(second)


async def test_a_pending_one_is_asked_for_again_after_a_restart(desk: Desk, house: House) -> None:
    """With the same callback: to its hub it is the same subscription, whichever is verified."""
    await desk.put()
    first = await desk.asked(1)
    await desk.status(Status.PENDING)
    await house.restart()
    assert await desk.asked(2) == first
    assert await desk.confirm(first)
    assert desk.upstream.status is Status.ACTIVE


async def test_failures_are_tried_again(desk: Desk, house: House) -> None:
    await house.restart(upstream_again_s=0.01)
    desk.other.refusal = Answer(500, {}, b"later")
    await desk.put()
    first = await desk.asked(3)
    assert "answered 500: later" in (await desk.status(Status.FAILED)).reason
    desk.other.refusal = None
    await until(lambda: desk.upstream.status is Status.PENDING, "a request that is accepted")
    assert await desk.confirm(first)
    assert (desk.upstream.status, desk.upstream.reason) == (Status.ACTIVE, "")


async def test_a_hub_that_does_not_ask_back(desk: Desk, house: House) -> None:
    await house.restart(upstream_answer_s=0.05, upstream_again_s=60.0)
    await desk.put()
    form = await desk.asked(1)
    assert "did not ask back within 0.05 s" in (await desk.status(Status.FAILED)).reason
    assert await desk.confirm(form)  # late is not too late
    assert desk.upstream.status is Status.ACTIVE


async def test_a_renewal_that_fails_shows_and_content_is_taken_meanwhile(
    desk: Desk, house: House
) -> None:
    await house.restart(upstream_again_s=0.01)
    form = await desk.active(lease_s=3)
    desk.other.refusal = Answer(503)
    await until(lambda: "answered 503" in desk.upstream.reason, "a failure that shows")
    assert desk.upstream.status is Status.ACTIVE
    assert desk.is_taken(form)
    await desk.status(Status.FAILED)  # the lease is over


async def test_the_topic_is_asked_anew_at_a_renewal(desk: Desk) -> None:
    await desk.active(lease_s=1)
    desk.other.page("/topic", {"Location": "/moved"}, status=301)
    desk.other.page("/moved", desk.other.links(topic="/moved", hub="/other-hub"))
    form = await desk.asked(2)
    assert form["hub.topic"] == desk.other.url + "/moved"
    assert desk.other.asked[1].path == "/other-hub"


async def test_a_topic_that_is_down_is_renewed_where_it_was(desk: Desk) -> None:
    first = await desk.active(lease_s=1)
    desk.other.page("/topic", status=503)
    second = await desk.asked(2)
    assert second["hub.topic"] == first["hub.topic"]
    assert await desk.confirm(second)


@pytest.mark.parametrize("location", ["http://[bad", "ftp://a/", "http://a:b/", "//"])
async def test_redirects_to_what_is_no_url(desk: Desk, house: House, location: str) -> None:
    await house.restart(upstream_again_s=0.01)
    desk.other.moved["/hub"] = Answer(307, {"Location": location})
    await desk.put()
    assert desk.other.url in (await desk.status(Status.FAILED)).reason
    desk.other.page("/topic", {"Location": location}, status=302)
    await until(lambda: "topic" in desk.upstream.reason, f"a failure: {desk.upstream}")
    del desk.other.moved["/hub"]
    desk.other.page("/topic", desk.other.links())
    await desk.asked(1)


@pytest.mark.parametrize("hub", ["http://10.0.0.1/hub", BASE_URL + "/hub"])
@pytest.mark.parametrize("authorization", [None, "Basic Zzpn"])
async def test_a_page_that_names_a_hub_where_nothing_is_sent(
    desk: Desk, hub: str, authorization: str | None
) -> None:
    desk.other.page("/topic", {"Link": f'<{hub}>; rel="hub", </topic>; rel="self"'})
    await desk.put(UpstreamLeases(authorization=authorization))
    assert "the hub http" in (await desk.status(Status.FAILED)).reason


async def test_what_was_not_foreseen_is_tried_again_too(
    desk: Desk, house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await house.restart(upstream_again_s=0.01)
    monkeypatch.setattr("warrenmq.hub.upstream.client.find_links", None)
    await desk.put()
    assert "the log has it" in (await desk.status(Status.FAILED)).reason
    assert "TypeError" in caplog.text
    monkeypatch.undo()
    await desk.asked(1)


async def test_a_hub_that_repeats_secrets(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the owner's list nor the log has them."""
    secret = "mine-alone"
    desk.other.refusal = Answer(400, {}, b"bad secret mine-alone")
    await desk.put(UpstreamLeases(given_secret=secret))
    assert "bad secret ..." in (await desk.status(Status.FAILED)).reason
    assert secret not in caplog.text


async def test_denied_while_pending_and_while_active(desk: Desk, house: House) -> None:
    for is_active in (False, True):
        if is_active:
            form = await desk.active()
        else:
            await desk.put()
            form = await desk.asked(1)
        token, topic = token_of(form), form["hub.topic"]
        assert not await desk.upstreams.callbacks.deny(token, "other", "no")
        assert not await desk.upstreams.callbacks.deny("unknown", topic, "no")
        assert await desk.upstreams.callbacks.deny(token, topic, "x" * 2_000)
        assert desk.upstream.status is Status.DENIED
        assert desk.upstream.reason.endswith("x" * 500)
        assert not desk.is_taken(form) and not await desk.confirm(form)
    count = len(desk.other.asked)
    await house.restart()
    assert desk.upstream.status is Status.DENIED
    assert len(desk.other.asked) == count


async def test_only_what_can_be_shown_of_a_reason_is_kept(desk: Desk) -> None:
    await desk.put()
    form = await desk.asked(1)
    token, topic = token_of(form), form["hub.topic"]
    assert await desk.upstreams.callbacks.deny(token, topic, "no\0t \x1b[1mhere\r\n")
    assert desk.upstream.reason.endswith(" has denied it: not [1mhere")


async def test_a_denied_renewal_is_not_repeated(desk: Desk) -> None:
    form = await desk.active(lease_s=1)
    second = await desk.asked(2)
    await desk.upstreams.callbacks.deny(token_of(second), second["hub.topic"], "no more")
    assert desk.upstream.status is Status.DENIED
    assert desk.is_taken(form)  # what was granted before was not taken back
    [state] = desk.upstreams._registry.all()
    await until(lambda: state.keeping is not None and state.keeping.done(), "the end of renewals")


class TestRemoving:
    async def test_its_hub_is_told(self, desk: Desk, house: House) -> None:
        form = await desk.active()
        assert await desk.upstreams.remove(*NAME)
        assert desk.upstreams.get(*NAME) is None and desk.upstreams.all() == []
        assert not desk.is_taken(form)
        left = await desk.asked(1, "unsubscribe")
        assert left["hub.callback"] == form["hub.callback"]
        assert await stored(house) == [("feed", "ending")]
        assert await desk.confirm(left)
        await until(lambda: _is_empty(house), "end of the row")
        assert not await desk.upstreams.remove(*NAME)

    async def test_what_is_only_pending_is_forgotten(self, desk: Desk, house: House) -> None:
        await desk.put()
        form = await desk.asked(1)
        await desk.status(Status.PENDING)
        assert await desk.upstreams.remove(*NAME)
        assert not await desk.confirm(form)
        await until(lambda: _is_empty(house), "end of the row")

    async def test_over_a_restart_and_a_hub_that_is_down(self, desk: Desk, house: House) -> None:
        await house.restart(upstream_again_s=0.01)
        form = await desk.active()
        desk.other.refusal = Answer(503)
        await desk.upstreams.remove(*NAME)
        await desk.asked(3, "unsubscribe")
        await house.restart(upstream_again_s=0.01)
        assert desk.upstreams.get(*NAME) is None
        count = len(desk.other.asked)
        await until(lambda: len(desk.other.asked) > count, "another try")
        assert await desk.confirm({**form, "hub.mode": "unsubscribe"})
        await until(lambda: _is_empty(house), "end of the row")

    async def test_with_the_lease_all_is_over(self, desk: Desk, house: House) -> None:
        await house.restart(upstream_again_s=0.01)
        await desk.active(lease_s=1)
        desk.other.refusal = Answer(503)
        await desk.upstreams.remove(*NAME)
        await until(lambda: _is_empty(house), "end of the row")

    async def test_the_name_is_free_at_once(self, desk: Desk, house: House) -> None:
        await desk.active()
        await desk.upstreams.remove(*NAME)
        assert await desk.put() is True
        form = await desk.asked(2)
        await until(lambda: desk.upstream.status is Status.PENDING, "the new one")
        assert await stored(house) == [("feed", "ending"), ("feed", "pending")]
        assert await desk.confirm(await desk.asked(1, "unsubscribe"))
        assert await desk.confirm(form)

    async def test_with_its_vhost(self, desk: Desk, house: House) -> None:
        form = await desk.active()
        house.hub.forget_vhost("other")
        house.hub.forget_owner("nobody")
        assert desk.is_taken(form)
        house.hub.forget_vhost("/")
        await until(lambda: desk.upstreams.get(*NAME) is None, "its end")
        assert not desk.is_taken(form)

    async def test_with_its_owner(self, desk: Desk) -> None:
        form = await desk.active()
        desk.house.hub.forget_owner("guest")
        await until(lambda: desk.upstreams.get(*NAME) is None, "its end")
        assert not desk.is_taken(form)

    async def test_of_an_owner_who_was_deleted_meanwhile(
        self, desk: Desk, house: House, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        form = await desk.active()
        monkeypatch.setattr(EverybodyMay, "refuse_owner", lambda _, owner: "gone")
        await house.restart()
        await until(lambda: desk.upstreams.get(*NAME) is None, "its end")
        assert not desk.is_taken(form)


async def _is_empty(house: House) -> bool:
    return await stored(house) == []


async def test_served_anew_is_served_once(desk: Desk) -> None:
    await desk.put()
    [state] = desk.upstreams._registry.all()
    first = state.keeping
    desk.upstreams._work.serve(state)
    assert first is not None and state.keeping is not first
    await until(first.done, "the end of the first")


class TestAskingAnew:
    async def test_the_same_does_nothing(self, desk: Desk) -> None:
        await desk.active()
        before = desk.upstream
        assert await desk.put() is False
        assert desk.upstream == before
        assert len(desk.other.asked) == 1

    async def test_another_key_is_asked_for_while_content_is_taken(self, desk: Desk) -> None:
        form = await desk.active()
        assert await desk.put(routing_key="k") is False
        assert desk.upstream.request.routing_key == "k"
        assert desk.is_taken(form)
        second = await desk.asked(2)
        assert second["hub.callback"] != form["hub.callback"]
        assert await desk.confirm(second)
        assert desk.is_taken(form) and desk.is_taken(second)

    async def test_another_topic_leaves_the_old_one(self, desk: Desk) -> None:
        form = await desk.active()
        desk.other.page("/else", desk.other.links(topic="/else"))
        assert await desk.put(url=desk.other.url + "/else") is False
        assert not desk.is_taken(form)
        assert (await desk.asked(1, "unsubscribe"))["hub.topic"] == form["hub.topic"]
        assert (await desk.asked(2))["hub.topic"] == desk.other.url + "/else"

    async def test_one_that_has_failed_is_tried_at_once(self, desk: Desk, house: House) -> None:
        await house.restart(upstream_again_s=3_600.0)
        desk.other.refusal = Answer(503)
        await desk.put()
        await desk.status(Status.FAILED)
        desk.other.refusal = None
        assert await desk.put() is False
        await desk.status(Status.PENDING)

    async def test_secrets(self, desk: Desk) -> None:
        await desk.put(UpstreamLeases(given_secret="mine", authorization="Basic Zzpn"))
        form = await desk.asked(1)
        assert form["hub.secret"] == "mine"
        assert desk.other.asked[0].headers["authorization"] == "Basic Zzpn"
        assert desk.other.fetched[-1][1]["authorization"] == "Basic Zzpn"
        await desk.put(is_signed=False)
        assert "hub.secret" not in await desk.asked(2)
        assert "authorization" not in desk.other.asked[1].headers

    async def test_credentials_are_not_for_any_hub_that_a_page_names(self, desk: Desk) -> None:
        with OtherHub(asks_back=False) as third:
            links = f'<{third.url}/hub>; rel="hub", </topic>; rel="self"'
            desk.other.page("/topic", {"Link": links})
            await desk.put(UpstreamLeases(authorization="Basic Zzpn"))
            await until(lambda: bool(third.asked), "a request at the third hub")
            assert "authorization" not in third.asked[0].headers
            assert desk.other.fetched[-1][1]["authorization"] == "Basic Zzpn"
            await desk.put(UpstreamLeases(authorization="Basic Zzpn"), hub=third.url + "/hub")
            await until(lambda: len(third.asked) > 1, "a request at the hub given by hand")
            assert third.asked[1].headers["authorization"] == "Basic Zzpn"

    async def test_credentials_are_for_the_hub_that_they_were_given_for(self, desk: Desk) -> None:
        with OtherHub(asks_back=False) as third:
            desk.other.moved["/hub"] = Answer(307, {"Location": third.url + "/hub"})
            await desk.put(UpstreamLeases(authorization="Basic Zzpn"))
            await until(lambda: bool(third.asked), "a request at the third hub")
            assert "authorization" not in third.asked[0].headers


class TestLimits:
    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"url": "ftp://a/b"}, "url"),
            ({"url": "http://user:pw@a/b"}, "url"),
            ({"url": BASE_URL + "/endpoint/x/news"}, "url"),
            ({"url": "https://b.example/x", "base_url": "https://b.example"}, "url"),
            ({"hub": "https://b.example/x", "base_url": "https://b.example"}, "hub"),
            ({"url": "http://10.0.0.1/"}, "url"),
            ({"hub": "nonsense"}, "hub"),
            ({"lease_seconds": 0}, "lease_seconds"),
            ({"lease_seconds": 10**12}, "lease_seconds"),
            ({"routing_key": "ü" * 128}, "routing_key"),
        ],
    )
    async def test_what_can_not_be(self, desk: Desk, change: dict[str, Any], field: str) -> None:
        with pytest.raises((BadRequest, CallbackRefused)) as caught:
            await desk.put(**change)
        assert caught.value.field == field
        assert "pw" not in str(vars(caught.value))
        assert desk.upstreams.all() == []

    @pytest.mark.parametrize("secret", ["", "x" * 200])
    async def test_secrets_that_can_not_be(self, desk: Desk, secret: str) -> None:
        with pytest.raises(BadRequest) as caught:
            await desk.put(UpstreamLeases(given_secret=secret))
        assert (caught.value.field, caught.value.value) == ("secret", None)

    async def test_a_lease_is_never_for_ever(self, desk: Desk) -> None:
        await desk.active(lease_s=10**12)
        current = desk.upstream.leases.current
        assert current is not None and current.expires_at < 10**10


class Nobody(EverybodyMay):
    def refuse_write(self, owner: str, resource: Resource, routing_key: str | None) -> str | None:
        return f"user '{owner}' may not write to {resource}"


async def test_who_may_not_write_does_not_subscribe(desk: Desk, house: House) -> None:
    house.rights = Nobody()
    await house.restart()
    await desk.put()
    found = await desk.status(Status.FAILED)
    assert found.reason == "user 'guest' may not write to queue 'in' in vhost '/'"
    assert desk.other.fetched == []


async def test_refused_and_accepted_content(desk: Desk) -> None:
    form = await desk.active()
    receiving = desk.upstreams.callbacks.receiving(token_of(form))
    assert receiving is not None
    await desk.upstreams.callbacks.refused(receiving, "may not")
    assert (desk.upstream.status, desk.upstream.reason) == (Status.FAILED, "may not")
    await desk.upstreams.callbacks.accepted(receiving)
    assert (desk.upstream.status, desk.upstream.reason) == (Status.ACTIVE, "")


async def test_what_can_not_be_stored_is_not_confirmed(
    desk: Desk, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.put()
    form = await desk.asked(1)
    await desk.status(Status.PENDING)
    database = house.hub._storage.database

    async def fails() -> None:
        raise StorageFailed("can't be reached now", field="database")

    monkeypatch.setattr(house.hub._storage, "database", fails)
    with pytest.raises(StorageFailed):
        await desk.confirm(form)
    with pytest.raises(StorageFailed):
        await desk.upstreams.remove(*NAME)
    assert desk.upstream.status is Status.PENDING
    monkeypatch.setattr(house.hub._storage, "database", database)
    assert await desk.confirm(form)
