"""What is known of topics, in either database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.topics.repository import TopicRepository
from warrenmq.hub.topics.topic import Topic

TOPIC = Topic(
    "http://b/", "http://b/", etag='W/"\xe9"', last_modified="Sat", content_type="text/plain",
    digest="d" * 64, known={"b": "1", "a": "2"}, checked_at=1.5, changed_at=2.5, failures=3,
    error="no", notice="hm", due_at=4.5, not_before=5.5,
)  # fmt: skip


@pytest.fixture
async def rows(storage: Storage) -> TopicRepository:
    return TopicRepository(await storage.database())


async def test_a_stored_topic_is_read_back_unchanged(rows: TopicRepository) -> None:
    await rows.put(TOPIC)
    found = await rows.get(TOPIC.key)
    assert found == TOPIC
    assert found is not None and list(found.known) == ["b", "a"]  # the order is theirs
    changed = replace(TOPIC, known={}, due_at=None, url="http://b/?")
    await rows.put(changed)
    assert await rows.get(TOPIC.key) == changed
    assert await rows.get("http://other/") is None


async def test_listing_is_by_url_and_leaves_the_entries_out(rows: TopicRepository) -> None:
    await rows.put(TOPIC)
    await rows.put(Topic("k", "http://a/"))
    assert await rows.all() == [Topic("k", "http://a/"), replace(TOPIC, known={})]


async def test_marking_changes_nothing_else(rows: TopicRepository) -> None:
    await rows.put(TOPIC)
    new = [Topic(f"k{number}", "http://k/", due_at=7.0) for number in range(3)]
    await rows.mark_due([replace(TOPIC, digest="", known={}, due_at=7.0), *new])
    assert await rows.get(TOPIC.key) == replace(TOPIC, due_at=7.0)
    assert await rows.get("k2") == new[2]


async def test_new_subscribers_until_they_are_served(rows: TopicRepository) -> None:
    other = replace(TOPIC, key="http://c/")
    for topic, identity in ((TOPIC, "1"), (TOPIC, "2"), (TOPIC, "2"), (other, "1")):
        await rows.add_subscriber(topic, identity)
    assert (await rows.get(TOPIC.key)) == TOPIC
    assert await rows.new_subscribers() == {TOPIC.key: ["1", "2"], other.key: ["1"]}
    await rows.put(TOPIC, ["1", "none"])
    await rows.delete([other.key, "unknown"])
    assert await rows.new_subscribers() == {TOPIC.key: ["2"]}
    assert [topic.key for topic in await rows.all()] == [TOPIC.key]
