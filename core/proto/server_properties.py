"""Server properties and mechanisms: the arguments of connection.start (AMQP 0-9-1 1.4.2.1)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from .. import VERSION
from ..wire.tables import encode_table

MECHANISMS: Final = "PLAIN AMQPLAIN"
EXTERNAL: Final = "EXTERNAL"
"""Offered only to clients whose verified certificate names a user."""

COMPATIBLE_PRODUCT: Final = "RabbitMQ"
COMPATIBLE_VERSION: Final = "3.13.7"
"""Clients choose features by product and version. kombu, and so Celery, sets a channel-wide
prefetch, which it must be able to raise while tasks wait for their time, for exactly this product
from 3.3 on; with any other name it limits each consumer once, and a worker with a few tasks for
tomorrow takes none for today. From 4.0 on clients avoid features that Warren has, such as shared
transient queues."""

CAPABILITIES: Final = (
    "authentication_failure_close",
    "basic.nack",
    "connection.blocked",
    "consumer_cancel_notify",
    "consumer_priorities",
    "direct_reply_to",
    "exchange_exchange_bindings",
    "per_consumer_qos",
    "publisher_confirms",
)


@lru_cache(4)
def start_arguments(external: bool, cluster_name: str) -> bytes:
    properties = encode_table(
        {
            "product": COMPATIBLE_PRODUCT,
            "version": COMPATIBLE_VERSION,
            "platform": f"Warren {VERSION}",
            "cluster_name": cluster_name,
            "copyright": "Warren contributors",
            "information": "Licensed under Apache 2.0",
            "capabilities": dict.fromkeys(CAPABILITIES, True),
        }
    )
    mechanisms = f"{MECHANISMS} {EXTERNAL}".encode() if external else MECHANISMS.encode()
    locales = b"en_US"
    return b"".join(
        (
            b"\x00\x09",
            properties,
            len(mechanisms).to_bytes(4, "big"),
            mechanisms,
            len(locales).to_bytes(4, "big"),
            locales,
        )
    )
