"""WebSocket frames as a client sends them."""

from __future__ import annotations

BINARY, CLOSE, PING, PONG = 2, 8, 9, 10
MASK = b"\x37\xfa\x21\x3d"


def client_frame(opcode: int, payload: bytes = b"", *, final: bool = True) -> bytes:
    """Masked, octet by octet (RFC 6455 5.3)."""
    size = len(payload)
    head = bytes((opcode | (0x80 if final else 0),))
    if size < 126:
        head += bytes((0x80 | size,))
    elif size < 1 << 16:
        head += b"\xfe" + size.to_bytes(2, "big")
    else:
        head += b"\xff" + size.to_bytes(8, "big")
    return head + MASK + bytes(octet ^ MASK[at % 4] for at, octet in enumerate(payload))
