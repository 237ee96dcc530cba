"""External topics with subscribers: their state, and pings by an operator.

For administrators only: the URL of a topic may contain a secret of its subscribers.
"""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from ....core.errors import not_found
from ....hub.subscriptions.websub import check_url
from ....hub.topics.topic import Topic
from ...documents import hub, requests
from ...requests.properties import parse_query
from ...responses.times import rfc3339
from ...subscriptions.filter import PAGING, paging_of, read_page
from .call import Call, answer
from .filters import Filters
from .required_tags import ADMINISTRATOR
from .route import GONE, Operation, Routes


def described(topic: Topic, subscribers: int) -> dict[str, Any]:
    """Returns the document of a topic; times are null for never."""
    return {
        "url": topic.url,
        "key": topic.key,
        "subscribers": subscribers,
        "content_type": topic.content_type,
        "checked_at": rfc3339(topic.checked_at),
        "changed_at": rfc3339(topic.changed_at),
        "due_at": rfc3339(topic.due_at),
        "failures": topic.failures,
        "error": topic.error,
        "notice": topic.notice,
    }


async def _list(call: Call) -> Response:
    """Lists external topics; with `page` or `page_size` as an object with RabbitMQ's paging
    keys."""
    query = parse_query(call.request.scope["query_string"])
    Filters(query, PAGING)
    page, topics = read_page(query), call.context.hub.topics
    if page is None:
        return answer([described(*found) for found in await topics.all()])
    found = await topics.all((page.number - 1) * page.size, page.size)
    total = await topics.total()
    paging = {**paging_of(page, total), "item_count": len(found), "total_count": total}
    return answer({"items": [described(*one) for one in found], **paging})


async def _ping(call: Call) -> Response:
    """Schedules a fetch of the topic; answers 204 once that is stored."""
    url = check_url("url", (await call.body()).text("url"))
    topics = call.context.hub.topics
    if not await topics.subscribers(url):
        raise not_found(f"topic '{url}' has no subscribers")
    await topics.ping([url])
    return Response(status_code=204)


ROUTES: Routes = {
    "/hub/topics": {
        "GET": Operation(_list, ADMINISTRATOR, {200: list[hub.Topic] | hub.TopicPage}, query=PAGING)
    },
    "/hub/topics/ping": {"POST": Operation(_ping, ADMINISTRATOR, GONE, requests.TopicPing)},
}
