"""Pipes to a child process, as streams of the event loop."""

from __future__ import annotations

import asyncio
import os
from typing import BinaryIO


def make_pipe() -> tuple[BinaryIO, BinaryIO]:
    """Returns the end to read from, and the end to write to."""
    read, write = os.pipe()
    return os.fdopen(read, "rb", 0), os.fdopen(write, "wb", 0)


async def open_reader(pipe: BinaryIO) -> tuple[asyncio.StreamReader, asyncio.BaseTransport]:
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
    return reader, transport


async def open_writer(pipe: BinaryIO) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()  # it reads nothing; the protocol needs one
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.connect_write_pipe(lambda: protocol, pipe)
    return asyncio.StreamWriter(transport, protocol, reader, loop)
