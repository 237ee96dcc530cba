"""Examples of the bodies in `requests.py`, for `/openapi.json`; a test sends each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from . import requests

_CALLBACK: Final = "https://app.example/hook"
_ORDERS: Final = {"name": "orders", "durable": True, "auto_delete": False, "arguments": {}}

EXAMPLES: Final[Mapping[Any, Any]] = {
    requests.Vhost: {"description": "Orders of the shop", "default_queue_type": "quorum"},
    requests.User: {"password": "eleven purple rabbits", "tags": ["monitoring"]},
    requests.Users: {"users": ["ada", "bob"]},
    requests.Permissions: {"configure": "", "write": "^news$", "read": "^orders"},
    requests.TopicPermissions: {"exchange": "news", "write": "^eu\\.", "read": ".*"},
    requests.Policy: {
        "pattern": "^orders", "apply-to": "queues", "priority": 1,
        "definition": {"max-length": 1000, "overflow": "reject-publish"},
    },
    requests.Limit: {"value": 1000},
    requests.ParameterValue: {"value": {"src-uri": "amqp://", "src-queue": "orders"}},
    requests.Definitions: {"queues": [{"vhost": "/", **_ORDERS}]},
    requests.Queue: {"durable": True, "arguments": {"x-queue-type": "quorum"}},
    requests.Exchange: {"type": "topic", "durable": True},
    requests.Binding: {"routing_key": "eu.#"},
    requests.Publish: {
        "routing_key": "eu.weather", "payload": "It rains", "payload_encoding": "string",
        "properties": {"content_type": "text/plain", "delivery_mode": 2},
    },
    requests.Get: {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"},
    requests.StreamRead: {"count": 10, "offset": "first"},
    requests.QueueAction: {"action": "sync"},
    requests.Name: {"name": "shop"},
    requests.Password: {"password": "eleven purple rabbits"},
    requests.Login: {"name": "ada", "password": "eleven purple rabbits"},
    requests.Setup: {"secret": "...", "name": "ada", "password": "eleven purple rabbits"},
    requests.Move: {"exchange": "news", "routing_key": "eu.weather", "count": 100},
    requests.Level: {"level": "debug"},
    requests.Capability: {"vhost": "/", "type": "x", "name": "news", "expires_in_s": 86_400},
    requests.Token: {
        "name": "dashboard", "expires_in_s": 86_400,
        "scopes": [{"read": "x/news", "vhost": "/"}, {"manage": "read", "path": "queues/*"}],
    },
    requests.Feed: {"url": "https://www.example.org/blog", "name": "blog"},
    requests.FeedChange: {"min_interval_s": 900},
    requests.Lease: {"lease_seconds": 2_592_000},
    requests.Subscription: {
        "vhost": "/", "resource_type": "exchange", "resource_name": "news", "topic": "eu.#",
        "callback": _CALLBACK,
    },
    requests.SubscriptionChange: {"lease_seconds": 2_592_000},
    requests.Subscriptions: {
        "subscriptions": [
            {"vhost": "/", "resource_type": "exchange", "resource_name": "news",
             "topic": "eu.#", "callback": _CALLBACK},
        ]
    },
    requests.DeadLetters: {"callback": _CALLBACK},
    requests.DeletedLetters: {"max_age_s": 86_400, "reason": "HTTP 410"},
    requests.Resend: {"callback": _CALLBACK, "outcome": "failed", "dry_run": True},
    requests.Test: {"body": "It rains", "content_type": "text/plain"},
    requests.TopicPing: {"url": "https://www.example.org/blog"},
    requests.Upstream: {
        "url": "https://www.example.org/blog", "sink": {"type": "x", "name": "news"},
        "routing_key": "blog",
    },
    requests.PipelineRun: {"state": "running", "rows": 1000, "lag": 20},
    requests.PipelineArchive: {"offset": 1000},
    requests.TransactionCommit: {"attempts": [[0, 7, 1]]},
}  # fmt: skip
