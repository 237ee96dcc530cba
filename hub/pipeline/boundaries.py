"""Decides which offsets are read, from an option and the offsets that are there."""

from __future__ import annotations

import logging
from datetime import datetime

from .client import Offsets, StreamClient
from .errors import DataLossError, OptionError
from .options import EARLIEST, LATEST, Boundary, ReadOptions

logger = logging.getLogger(__name__)


def resolve(name: str, boundary: Boundary, offsets: Offsets, client: StreamClient) -> int:
    """Returns the offset that an option names. Raises `OptionError` for one behind the stream."""
    if boundary == EARLIEST:
        return offsets.earliest
    if boundary == LATEST:
        return offsets.next
    if isinstance(boundary, datetime):
        return client.offset_at(boundary)
    assert isinstance(boundary, int)
    if boundary > offsets.next:
        raise OptionError(
            f"{name}={boundary}: {client.name} ends at offset {offsets.next}; give that at most"
        )
    return boundary


def available(start: int, offsets: Offsets, options: ReadOptions, client: StreamClient) -> int:
    """Returns the first offset from `start` on that is still there. Raises `DataLossError` if that
    is another one, unless `failOnDataLoss` is false."""
    if start >= offsets.earliest:
        return start
    report_loss(
        options,
        f"{client.name} begins at offset {offsets.earliest}, so those from {start} on are lost",
    )
    return offsets.earliest


def report_loss(options: ReadOptions, loss: str) -> None:
    """Raises `DataLossError`, or logs the loss where it is to be accepted."""
    if options.fail_on_data_loss:
        raise DataLossError(f"{loss}; set failOnDataLoss to false to go on without them")
    logger.warning("%s; going on without them, as failOnDataLoss is false", loss)
