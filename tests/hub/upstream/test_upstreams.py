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
from warrenmq.hub.errors import BadRequest, CallbackRefused, StorageFailed
from warrenmq.hub.owner_rights import AllowAll
from warrenmq.hub.requests import Resource
from warrenmq.hub.upstream.upstream import (
    CALLBACK_PATH,
    Upstream,
    UpstreamLeases,
    UpstreamRequest,
    UpstreamStatus,
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

    async def pending(self) -> dict[str, str]:
        """Requested and not verified; gives the form of the request."""
        await self.put()
        form = await self.asked(1)
        await self.status(UpstreamStatus.PENDING)
        return form

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

    async def status(self, status: UpstreamStatus) -> Upstream:
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

    database = await house.hub.storage.database()
    repository = UpstreamRepository(database, house.sealer)
    return sorted((one.name, one.status.value) for one in await repository.all())


async def test_a_request_is_stored_before_it_is_sent(desk: Desk) -> None:
    """The hub may verify it before it answers. Equal requests at the same time are one."""
    assert sorted(await asyncio.gather(desk.put(), desk.put(), desk.put())) == [False, False, True]
    form = await desk.asked(1)
    assert (await desk.status(UpstreamStatus.PENDING)).leases.pending is not None
    assert await stored(desk.house) == [("feed", "pending")]
    assert not desk.is_taken(form) and not desk.is_taken({**form, "hub.callback": "unknown"})
    assert await desk.confirm(form, 10**12)  # the lease ends nevertheless
    current = desk.upstream.leases.current
    assert current is not None and current.expires_at < 10**10
    assert await stored(desk.house) == [("feed", "active")]
    assert desk.is_taken(form)
    before = desk.upstream
    assert await desk.put() is False  # the same request has no effect
    assert desk.upstream == before and len(desk.other.asked) == 1


async def test_a_renewal_has_a_new_callback_and_leaves_the_old_one(desk: Desk) -> None:
    first = await desk.active(lease_s=2)
    second = await desk.asked(2)
    assert second["hub.callback"] != first["hub.callback"]
    assert second["hub.secret"] != first["hub.secret"]
    assert desk.upstream.status is UpstreamStatus.ACTIVE
    assert desk.is_taken(first)
    assert await desk.confirm(second, 1_000)
    assert desk.is_taken(second)
    left = await desk.asked(1, "unsubscribe")
    assert left["hub.callback"] == first["hub.callback"]
    assert not desk.is_taken(first)  # its time is over when it is left
    assert await desk.confirm(left)
    await until(lambda: desk.upstream.leases.leaving == (), "end of the old lease")
    assert desk.upstream.status is UpstreamStatus.ACTIVE


async def test_a_pending_request_is_repeated_after_a_restart(desk: Desk, house: House) -> None:
    """With the same callback: to its hub it is the same subscription."""
    first = await desk.pending()
    await house.restart()
    assert await desk.asked(2) == first
    assert await desk.confirm(first)
    assert desk.upstream.status is UpstreamStatus.ACTIVE


async def test_failures_are_repeated(desk: Desk, house: House) -> None:
    await house.restart(upstream_again_s=0.01)
    desk.other.refusal = Answer(500, {}, b"later")
    await desk.put()
    first = await desk.asked(3)
    assert "answered 500: later" in (await desk.status(UpstreamStatus.FAILED)).reason
    desk.other.refusal = None
    await until(
        lambda: desk.upstream.status is UpstreamStatus.PENDING, "a request that is accepted"
    )
    assert await desk.confirm(first)
    assert (desk.upstream.status, desk.upstream.reason) == (UpstreamStatus.ACTIVE, "")


async def test_a_hub_that_does_not_verify(desk: Desk, house: House) -> None:
    await house.restart(upstream_answer_s=0.05, upstream_again_s=60.0)
    await desk.put()
    form = await desk.asked(1)
    assert "did not ask back within 0.05 s" in (await desk.status(UpstreamStatus.FAILED)).reason
    assert await desk.confirm(form)  # late is not too late
    assert desk.upstream.status is UpstreamStatus.ACTIVE


async def test_a_renewal_follows_the_topic_unless_it_is_down(desk: Desk) -> None:
    await desk.active(lease_s=1)
    desk.other.page("/topic", {"Location": "/moved"}, status=301)
    desk.other.page("/moved", desk.other.links(topic="/moved", hub="/other-hub"))
    second = await desk.asked(2)
    assert second["hub.topic"] == desk.other.url + "/moved"
    assert desk.other.asked[1].path == "/other-hub"
    desk.other.page("/topic", status=503)
    assert await desk.confirm(second, 1)
    third = await desk.asked(3)
    assert third["hub.topic"] == second["hub.topic"] and await desk.confirm(third)


@pytest.mark.parametrize("location", ["http://[bad", "ftp://a/", "http://a:b/", "//"])
async def test_redirects_to_invalid_urls_are_failures(
    desk: Desk, house: House, location: str
) -> None:
    await house.restart(upstream_again_s=0.01)
    desk.other.moved["/hub"] = Answer(307, {"Location": location})
    await desk.put()
    assert desk.other.url in (await desk.status(UpstreamStatus.FAILED)).reason
    desk.other.page("/topic", {"Location": location}, status=302)
    await until(lambda: "topic" in desk.upstream.reason, f"a failure: {desk.upstream}")
    del desk.other.moved["/hub"]
    desk.other.page("/topic", desk.other.links())
    await desk.asked(1)


@pytest.mark.parametrize("hub", ["http://10.0.0.1/hub", BASE_URL + "/hub"])
@pytest.mark.parametrize("authorization", [None, "Basic Zzpn"])
async def test_a_page_that_names_a_refused_hub(
    desk: Desk, hub: str, authorization: str | None
) -> None:
    desk.other.page("/topic", {"Link": f'<{hub}>; rel="hub", </topic>; rel="self"'})
    await desk.put(UpstreamLeases(authorization=authorization))
    assert "the hub http" in (await desk.status(UpstreamStatus.FAILED)).reason


async def test_unexpected_errors_are_repeated_too(
    desk: Desk, house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await house.restart(upstream_again_s=0.01)
    monkeypatch.setattr("warrenmq.hub.upstream.client.find_links", None)
    await desk.put()
    assert "the log has it" in (await desk.status(UpstreamStatus.FAILED)).reason
    assert "TypeError" in caplog.text
    monkeypatch.undo()
    await desk.asked(1)


@pytest.mark.parametrize("is_active", [False, True])
async def test_a_denial_ends_it(desk: Desk, house: House, is_active: bool) -> None:
    form = await (desk.active() if is_active else desk.pending())
    shown = "x" * 492
    reason = f"\0\x1b[1m\r\n {shown}yyyyyy"
    assert await desk.upstreams.callbacks.deny(token_of(form), form["hub.topic"], reason)
    assert desk.upstream.reason.endswith(f"has denied it: [1m {shown}")
    assert not desk.is_taken(form) and not await desk.confirm(form)
    await house.restart()
    assert desk.upstream.status is UpstreamStatus.DENIED and len(desk.other.asked) == 1


async def test_a_denied_renewal_is_not_repeated(desk: Desk) -> None:
    form = await desk.active(lease_s=1)
    second = await desk.asked(2)
    await desk.upstreams.callbacks.deny(token_of(second), second["hub.topic"], "no more")
    assert desk.upstream.status is UpstreamStatus.DENIED
    assert desk.is_taken(form)  # what was granted before was not taken back
    later = desk.other.page("/later", desk.other.links(topic="/later"))
    await desk.upstreams.put("/", "later", "guest", desk.request(url=later), UpstreamLeases())
    assert (await desk.asked(3))["hub.topic"] == later


class TestRemoving:
    async def test_a_pending_lease_is_dropped(self, desk: Desk, house: House) -> None:
        form = await desk.pending()
        assert await desk.upstreams.remove(*NAME)
        assert not await desk.confirm(form)
        await until(lambda: _is_empty(house), "end of the row")

    async def test_a_removed_upstream_is_unsubscribed_even_after_a_restart(
        self, desk: Desk, house: House
    ) -> None:
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

    async def test_a_removed_upstream_is_deleted_at_the_end_of_its_lease(
        self, desk: Desk, house: House
    ) -> None:
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
        await until(lambda: desk.upstream.status is UpstreamStatus.PENDING, "the new one")
        assert await stored(house) == [("feed", "ending"), ("feed", "pending")]
        assert await desk.confirm(await desk.asked(1, "unsubscribe"))
        assert await desk.confirm(form)

    @pytest.mark.parametrize(("what", "name"), [("vhost", "/"), ("owner", "guest")])
    async def test_with_its_vhost_or_owner(
        self, desk: Desk, house: House, what: str, name: str
    ) -> None:
        form = await desk.active()
        forget = {"vhost": house.hub.forget_vhost, "owner": house.hub.forget_owner}[what]
        forget("other")
        assert desk.is_taken(form)
        forget(name)
        await until(lambda: desk.upstreams.get(*NAME) is None, "its end")
        assert not desk.is_taken(form)

    async def test_an_upstream_of_an_owner_deleted_before_the_start_ends(
        self, desk: Desk, house: House, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        form = await desk.active()
        monkeypatch.setattr(AllowAll, "owner_refusal", lambda _, owner: "gone")
        await house.restart()
        await until(lambda: desk.upstreams.get(*NAME) is None, "its end")
        assert not desk.is_taken(form)


async def _is_empty(house: House) -> bool:
    return await stored(house) == []


class TestAskingAnew:
    async def test_another_key_keeps_the_lease(self, desk: Desk) -> None:
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

    async def test_secrets(self, desk: Desk) -> None:
        await desk.put(UpstreamLeases(given_secret="mine", authorization="Basic Zzpn"))
        form = await desk.asked(1)
        assert form["hub.secret"] == "mine"
        assert desk.other.asked[0].headers["authorization"] == "Basic Zzpn"
        assert desk.other.fetched[-1][1]["authorization"] == "Basic Zzpn"
        await desk.put(is_signed=False)
        assert "hub.secret" not in await desk.asked(2)
        assert "authorization" not in desk.other.asked[1].headers

    async def test_credentials_are_for_the_topic_and_the_configured_hub(self, desk: Desk) -> None:
        with OtherHub(asks_back=False) as third:
            desk.other.moved["/hub"] = Answer(307, {"Location": third.url + "/hub"})
            await desk.put(UpstreamLeases(authorization="Basic Zzpn"), routing_key="k")
            await until(lambda: bool(third.asked), "a redirected request")
            assert "authorization" not in third.asked.pop().headers
            links = f'<{third.url}/hub>; rel="hub", </topic>; rel="self"'
            desk.other.page("/topic", {"Link": links})
            await desk.put(UpstreamLeases(authorization="Basic Zzpn"))
            await until(lambda: bool(third.asked), "a request at the third hub")
            assert "authorization" not in third.asked[0].headers
            assert desk.other.fetched[-1][1]["authorization"] == "Basic Zzpn"
            await desk.put(UpstreamLeases(authorization="Basic Zzpn"), hub=third.url + "/hub")
            await until(lambda: len(third.asked) > 1, "a request at the hub given by hand")
            assert third.asked[1].headers["authorization"] == "Basic Zzpn"


class TestLimits:
    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"secret": ""}, "secret"),
            ({"url": "http://user:pw@a/b"}, "url"),
            ({"url": "https://b.example/x", "base_url": "https://b.example"}, "url"),
            ({"hub": "https://b.example/x", "base_url": "https://b.example"}, "hub"),
            ({"url": "http://10.0.0.1/"}, "url"),
            ({"lease_seconds": 10**12}, "lease_seconds"),
            ({"routing_key": "ü" * 128}, "routing_key"),
        ],
    )
    async def test_bad_requests_are_refused(
        self, desk: Desk, change: dict[str, Any], field: str
    ) -> None:
        with pytest.raises((BadRequest, CallbackRefused)) as caught:
            await desk.put(UpstreamLeases(given_secret=change.pop("secret", None)), **change)
        assert caught.value.field == field
        assert "pw" not in str(vars(caught.value)) and "xxx" not in str(vars(caught.value))
        assert desk.upstreams.all() == []


class Nobody(AllowAll):
    def write_refusal(self, owner: str, resource: Resource, routing_key: str | None) -> str | None:
        return f"user '{owner}' may not write to {resource}"


async def test_an_owner_without_permission_does_not_subscribe(desk: Desk, house: House) -> None:
    house.rights = Nobody()
    await house.restart()
    await desk.put()
    found = await desk.status(UpstreamStatus.FAILED)
    assert found.reason == "user 'guest' may not write to queue 'in' in vhost '/'"
    assert desk.other.fetched == []


async def test_nothing_is_confirmed_without_a_database(
    desk: Desk, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = await desk.pending()
    database = house.hub.storage.database

    async def fails() -> None:
        raise StorageFailed("can't be reached now", field="database")

    monkeypatch.setattr(house.hub.storage, "database", fails)
    with pytest.raises(StorageFailed):
        await desk.confirm(form)
    with pytest.raises(StorageFailed):
        await desk.upstreams.remove(*NAME)
    assert desk.upstream.status is UpstreamStatus.PENDING
    monkeypatch.setattr(house.hub.storage, "database", database)
    assert await desk.confirm(form)
