"""What was confirmed is remembered for a while, by id and content."""

from __future__ import annotations

from warrenmq.hub.upstream.state import SeenDigests, digest_of


def test_the_last_digests_are_kept() -> None:
    seen = SeenDigests(limit=3)
    for number in range(5):
        seen.add(b"%d" % number)
    assert [number for number in range(5) if b"%d" % number in seen] == [2, 3, 4]
    seen.add(b"2")
    seen.add(b"5")
    assert b"2" in seen and b"3" not in seen


def test_a_digest_is_of_id_and_content() -> None:
    assert digest_of(b"msg_1", b"a") == digest_of(b"msg_1", b"a")
    assert digest_of(b"msg_1", b"a") != digest_of(b"msg_1", b"b")
    assert digest_of(b"msg_1", b"a") != digest_of(b"msg_2", b"a")
