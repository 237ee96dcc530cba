"""The methods of AMQP 0-9-1 that Warren sends or compares, by name.

A method number is the class id in the upper and the method id in the lower 16 bits, as both stand
at the beginning of a method frame's payload (AMQP 0-9-1 4.2.4).
"""

from __future__ import annotations

from typing import Final

NO_METHOD: Final = 0
"""In a close method: the error was caused by no method."""

CONNECTION_START: Final = 0x000A000A
CONNECTION_START_OK: Final = 0x000A000B
CONNECTION_TUNE: Final = 0x000A001E
CONNECTION_OPEN_OK: Final = 0x000A0029
CONNECTION_CLOSE: Final = 0x000A0032
CONNECTION_CLOSE_OK: Final = 0x000A0033
CONNECTION_BLOCKED: Final = 0x000A003C
CONNECTION_UNBLOCKED: Final = 0x000A003D
CONNECTION_UPDATE_SECRET_OK: Final = 0x000A0047

CHANNEL_OPEN: Final = 0x0014000A
CHANNEL_OPEN_OK: Final = 0x0014000B
CHANNEL_FLOW_OK: Final = 0x00140015
CHANNEL_CLOSE: Final = 0x00140028
CHANNEL_CLOSE_OK: Final = 0x00140029

ACCESS_REQUEST: Final = 0x001E000A
ACCESS_REQUEST_OK: Final = 0x001E000B
"""Of AMQP 0-8; old clients still request a ticket."""

EXCHANGE_DECLARE_OK: Final = 0x0028000B
EXCHANGE_DELETE_OK: Final = 0x00280015
EXCHANGE_BIND_OK: Final = 0x0028001F
EXCHANGE_UNBIND_OK: Final = 0x00280033

QUEUE_DECLARE_OK: Final = 0x0032000B
QUEUE_BIND_OK: Final = 0x00320015
QUEUE_PURGE_OK: Final = 0x0032001F
QUEUE_DELETE_OK: Final = 0x00320029
QUEUE_UNBIND_OK: Final = 0x00320033

BASIC_QOS_OK: Final = 0x003C000B
BASIC_CONSUME_OK: Final = 0x003C0015
BASIC_CANCEL: Final = 0x003C001E
BASIC_CANCEL_OK: Final = 0x003C001F
BASIC_PUBLISH: Final = 0x003C0028
BASIC_RETURN: Final = 0x003C0032
BASIC_DELIVER: Final = 0x003C003C
BASIC_GET_OK: Final = 0x003C0047
BASIC_GET_EMPTY: Final = 0x003C0048
BASIC_ACK: Final = 0x003C0050
BASIC_RECOVER_OK: Final = 0x003C006F
BASIC_NACK: Final = 0x003C0078

CONFIRM_SELECT_OK: Final = 0x0055000B

TX_SELECT_OK: Final = 0x005A000B
TX_COMMIT: Final = 0x005A0014
TX_COMMIT_OK: Final = 0x005A0015
TX_ROLLBACK_OK: Final = 0x005A001F


def octets(method: int) -> bytes:
    """The first four octets of the method's frame payload."""
    return method.to_bytes(4, "big")
