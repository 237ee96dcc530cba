"""Topics of others that somebody subscribes to: how they fare, and a ping by hand.

For administrators: the URL of a topic may hold what only its subscribers know.
"""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from ....core.errors import not_found
from ....hub.subscriptions.websub import check_url
from ....hub.topics.topic import Topic
from .call import Call, answer
from .rights import ADMINISTRATOR
from .route import Routes


def described(topic: Topic, subscribers: int) -> dict[str, Any]:
    """Times are seconds since 1970, null for never."""
    return {
        "url": topic.url,
        "key": topic.key,
        "subscribers": subscribers,
        "content_type": topic.content_type,
        "checked_at": topic.checked_at or None,
        "changed_at": topic.changed_at or None,
        "due_at": topic.due_at,
        "failures": topic.failures,
        "error": topic.error,
        "notice": topic.notice,
    }


async def _list(call: Call) -> Response:
    found = await call.context.hub.topics.all()
    return answer([described(topic, subscribers) for topic, subscribers in found])


async def _ping(call: Call) -> Response:
    """204 when it outlives a crash that the topic is to be fetched."""
    url = check_url("url", (await call.body()).text("url"))
    topics = call.context.hub.topics
    if not await topics.subscribers(url):
        raise not_found(f"nobody subscribes to topic '{url}'")
    await topics.ping([url])
    return Response(status_code=204)


ROUTES: Routes = {
    "/hub/topics": {"GET": (_list, ADMINISTRATOR)},
    "/hub/topics/ping": {"POST": (_ping, ADMINISTRATOR)},
}
