"""POSTs that a page of another site makes a browser send."""

from __future__ import annotations

import httpx
import pytest

from tests.app.conftest import GUEST, World
from tests.support.settings import hub_settings
from warrenmq.app.access.cross_site import refuse_other_sites
from warrenmq.app.problems import Problem

FORM = {"hub.mode": "subscribe", "hub.topic": "a", "hub.callback": "http://a.example/"}


def is_refused(fields: dict[str, str], method: str = "POST") -> bool:
    headers = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
    try:
        refuse_other_sites({"method": method, "headers": headers}, "https://public.example/hub")
    except Problem:
        return True
    return False


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"Host": "hub"}, False),
        ({"Host": "hub", "Origin": "http://hub"}, False),
        ({"Host": "hub:15672", "Origin": "http://HUB:15672"}, False),
        ({"Host": "hub:443", "Origin": "https://hub"}, False),
        ({"Host": "hub:15672", "Origin": "http://hub:80"}, True),
        ({"Host": "hub", "Origin": "http://evil.example"}, True),
        ({"Host": "hub", "Origin": "null"}, True),
        ({"Origin": "http://hub"}, True),
        ({"Host": "inner", "X-Forwarded-Host": "hub", "Origin": "https://hub"}, False),
        ({"Host": "inner", "Origin": "https://public.example"}, False),
        ({"Host": "hub", "Origin": "http://hub", "Sec-Fetch-Site": "same-origin"}, False),
        ({"Host": "inner", "Origin": "https://hub", "Sec-Fetch-Site": "same-origin"}, True),
        ({"Host": "hub", "Origin": "https://evil", "Sec-Fetch-Site": "none"}, True),
        ({"Host": "hub", "Origin": "https://other.hub", "Sec-Fetch-Site": "same-site"}, True),
        ({"Host": "hub", "Origin": "http://hub", "Sec-Fetch-Site": "same-site"}, True),
        ({"Host": "hub", "Sec-Fetch-Site": "same-site"}, True),
        ({"Host": "hub", "Sec-Fetch-Site": "of tomorrow"}, True),
        ({"Host": "hub", "Origin": ""}, False),
        ({"Host": "hub", "Origin": "https://evil", "Sec-Fetch-Site": "cross-site"}, True),
        ({"Host": "hub", "Sec-Fetch-Site": "cross-site"}, True),
        ({"Host": "hub", "Sec-Fetch-Site": "none"}, False),
    ],
)
def test_requests_from_pages_of_other_sites_are_refused(
    fields: dict[str, str], refused: bool
) -> None:
    assert is_refused(fields) is is_refused(fields, "PUT") is refused
    assert not is_refused(fields, "GET")


@pytest.mark.parametrize(
    "path", ["/subscribe/x/news", "/endpoint/x/news", "/subscriptions", "/api/hub/subscriptions"]
)
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_refused_request_has_no_effect(world: World, path: str, site: str) -> None:
    await world.exchange("news")
    foreign = {"Sec-Fetch-Site": site, "Origin": "http://evil.example"}
    async with world.client(auth=GUEST) as http:
        for _ in range(2):  # also where the user, and the plan of a publish, are known
            before = await http.post(path, content=b"{}", headers={"Content-Type": ""})
            assert before.status_code != 403
            answer = await http.post(path, content=b"{}", headers=foreign)
            assert (answer.status_code, "another site" in answer.text) == (403, True)
        assert (await http.get("/endpoint/x/news", headers=foreign)).status_code == 200


async def test_at_hub_without_credentials_there_is_nothing_to_steal(world: World) -> None:
    world.hub.settings = hub_settings(hub_foreign_topics=True, hub_anonymous=True)
    foreign = {"Sec-Fetch-Site": "cross-site"}
    form = {**FORM, "hub.topic": "http://feed.example/"}
    async with world.client(auth=None) as http:
        assert (await http.post("/hub", data=form, headers=foreign)).status_code == 202
        answer: httpx.Response = await http.post("/hub", data=form, headers=foreign, auth=GUEST)
        assert answer.status_code == 403
