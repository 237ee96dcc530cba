"""Each check can fail: a hub with the fault that it is there for is found out."""

from __future__ import annotations

import pytest

from warrenmq.app.conformance.checks import all_checks
from warrenmq.app.conformance.results import Level, Outcome

from .support import check

BREACHES = [
    (100, "names another topic", "hub.topic in the verification"),
    (100, "tells no lease", "hub.lease_seconds in the verification is None"),
    (100, "signs without a secret", "no secret to sign with"),
    (100, "does not name itself", "rel=hub"),
    (100, "does not name the topic", "rel=self"),
    (100, "sends no body", "no body"),
    (101, "signs nothing", "X-Hub-Signature is missing"),
    (101, "signs something else", "is wrong"),
    (101, "signs with MD5", "the method is none of"),
    (102, "refuses what it does not know", "hub.foo is unknown"),
    (103, "subscribes twice", "delivered twice"),
    (104, "never ends", "after the subscription had ended"),
    (105, "trims bodies", "not the topic's content"),
    (105, "drops parameters of types", "Content-Type is 'text/plain'"),
    (106, "reformats JSON", "not the topic's content"),
    (107, "answers 200", "not with 202"),
    (110, "verifies before it answers", "only when its callback had"),
    (111, "takes long secrets", "200 letters"),
    (112, "cuts secrets", "is wrong"),
    (113, "drops the query", "the callback given was"),
    (114, "tidies callbacks", "the callback given was"),
    (115, "compares topics as they are spelled", "was not received by"),
    (116, "takes everything", "not 4xx"),
    (117, "refuses silently", "is empty"),
    (118, "grants everything", "a lease of '0' s"),
    (119, "garbles tokens", "was returned as 't'"),
    (120, "reuses challenges", "used again"),
    (121, "believes every body", "had not confirmed"),
    (122, "believes every body", "had not confirmed"),
    (123, "believes every status", "had not confirmed"),
    (124, "believes every status", "had not confirmed"),
    (125, "follows redirects when it verifies", "had not confirmed"),
    (126, "changes before it verifies", "is wrong"),
    (127, "keeps the first secret", "is wrong"),
    (128, "never clears a secret", "no secret to sign with"),
    (129, "knows one topic a callback", "was not received by"),
    (130, "grants everything", "as good as endless"),
    (131, "ignores the end of leases", "after the end of the lease of"),
    (132, "keeps the first lease", "was not received by"),
    (135, "changes before it verifies", "was not received by"),
    (136, "asks the publisher at the end", "the hub denied the unsubscribe request"),
    (140, "denies without a topic", "hub.topic in the denial is None"),
    (141, "denies without a topic", "hub.topic in the denial is None"),
    (142, "denies without a topic", "hub.topic in the denial is None"),
    (150, "thinks that all is text", "not the topic's content"),
    (151, "cuts large bodies", "not the topic's content"),
    (152, "sends two Link headers", "there are 2 Link headers"),
    (153, "signs with SHA-1", "sha1"),
    (154, "takes 200 alone for success", "after 201 the notification was delivered again"),
    (155, "follows redirects when it sends", "followed the redirect"),
    (156, "signs everything with one secret", "is wrong"),
    (160, "never tries again", "no second attempt"),
    (161, "never tries again", "no second attempt"),
    (162, "does not wait as asked", "asked to wait 5 s"),
    (163, "ends what fails", "was not delivered"),
    (164, "sends one after the other", "was not received by"),
    (165, "names each attempt anew", "webhook-id was"),
    (170, "sends additions", "not the topic's content"),
    (171, "drops what is the feed's own", "element title is None"),
    (171, "drops the newest entry", "does not have what is new"),
    (171, "changes entries", "entries were changed"),
    (172, "drops what is the feed's own", "element title is None"),
    (172, "drops the newest entry", "does not have what is new"),
    (172, "changes entries", "entries were changed"),
    (174, "drops parameters of types", "Content-Type is"),
    (186, "forgets pings while it fetches", "the last content was not delivered"),
]
UNDECIDED = [
    (137, "goes on after 410", "continues after 410, as it may"),
    (165, "never tries again", ""),
    (173, "sends what has not changed", "sends at each ping, as it may"),
    (180, "does not know hub.topic", "does not know this form"),
    (181, "does not know hub.url", "does not know this form"),
    (182, "takes one URL", "sent no notification"),
    (183, "does not know hub.url[]", "does not know this form"),
    (184, "takes no list", "sent no notification"),
    (185, "wants subscribers", "nobody has subscribed"),
]
"""What hubs may do, and what is then not decided."""


@pytest.mark.thorough
@pytest.mark.parametrize(("number", "fault", "reason"), BREACHES)
async def test_fault_is_found(number: int, fault: str, reason: str) -> None:
    (result,) = await check(fault, only=number, patience_s=8.0 if number == 162 else 3.0)
    assert result.outcome is Outcome.FAIL, result
    assert reason in result.reason
    assert result.seen


@pytest.mark.parametrize(("number", "fault", "reason"), UNDECIDED)
async def test_permitted_behaviour_is_skipped_or_fails_a_may_check(
    number: int, fault: str, reason: str
) -> None:
    (result,) = await check(fault, only=number)
    assert result.level is Level.MAY
    assert result.outcome is (Outcome.SKIP if reason else Outcome.FAIL), result
    assert reason in result.reason


async def test_right_hub_passes_every_check() -> None:
    results = await check(patience_s=20.0, grace_s=3.0)
    assert [result for result in results if result.outcome is not Outcome.PASS] == []
    assert [result.number for result in results] == [one.number for one in all_checks()]


def test_every_check_has_a_fault() -> None:
    found = {number for number, *_ in BREACHES + UNDECIDED}
    assert {one.number for one in all_checks()} == found
