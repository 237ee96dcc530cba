"""Tags, ids and summaries of the operations of `/openapi.json`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

Schema = dict[str, Any]
TAGS: Final[Mapping[str, tuple[str, str]]] = {
    "Publish and subscribe": (
        r"(/\{vhost\})?/(endpoint|subscribe|subscriptions|in)\b",
        "Exchanges and queues by their URLs, as RabbitHub has them.",
    ),
    "Read": (
        r"(/\{vhost\})?/(stream|streams|feeds)\b", "Messages as they come, streams, and feeds.",
    ),
    "WebSub": (r"/hub\b", "The hub of WebSub and PubSubHubbub."),
    "Webhooks, feeds and topics": (
        r"/api/hub\b", "Subscriptions, deliveries, feeds, outputs, tokens and pipelines.",
    ),
    "This server": (r"/api/warren\b", "Sessions, the log, snapshots, and looking at messages."),
    "Queues and exchanges": (
        r"/api/(queues|exchanges|bindings|consumers)\b",
        "Queues, exchanges, bindings and messages, as RabbitMQ's management has them.",
    ),
    "Users and virtual hosts": (
        r"/api/(vhosts|users|permissions|topic-permissions|policies|operator-policies|vhost-limits"
        r"|user-limits|parameters|global-parameters|definitions)\b",
        "Users, permissions, virtual hosts, policies, limits, parameters and definitions.",
    ),
    "Server and connections": (
        r"/api\b", "The server, its health, connections and channels, as RabbitMQ has them.",
    ),
    "Transactions": (r"/transactions\b", "Messages of several tasks, published all or none."),
    "Tunnels": (r"/reversehttp\b", "Public URLs for servers and pages behind a firewall."),
    "Health, metrics and pages": (r"/", "For load balancers, Prometheus and browsers."),
}  # fmt: skip
"""The first that fits a path counts."""
DONE: Final[Mapping[int, str]] = {
    200: "Done.",
    201: "Something new was made, and is stored.",
    202: "Accepted, and stored.",
    204: "Done, and stored; there is no body.",
    206: "The range of bytes that was asked for.",
    303: "Shown as a page elsewhere.",
    304: "Unchanged since the client's copy.",
    307: "The same at another URL.",
    308: "The same at another URL.",
    503: "The check has failed, or the server is not ready.",
}
"""The meaning of the status of an answer, with a document or with none."""


def identified(path: str, method: str, operation: Schema) -> Schema:
    """Returns the operation with its tag, id and summary."""
    sentence = operation["description"].partition(". ")[0].removesuffix(".")
    tag = next(title for title, (pattern, _) in TAGS.items() if re.match(pattern, path))
    own = {"operationId": _identity(path, method), "tags": [tag], "summary": sentence}
    return {**own, **operation}


def _identity(path: str, method: str) -> str:
    """Returns a name for generated clients: `getApiQueuesVhostQueue`."""
    words = re.findall(r"[a-zA-Z0-9]+", path)
    if len(path) > 1 and path.endswith("/"):
        words.append("index")
    return method + "".join(word[0].upper() + word[1:] for word in words)
