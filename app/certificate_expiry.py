"""Finds certificates that expire soon."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

DAYS: Final = {"days": 1, "weeks": 7, "months": 30, "years": 365}
"""Units of time, in days, as RabbitMQ counts them."""
WITHIN_MAX: Final = 10_000


class Expiring(NamedTuple):
    """A certificate that ends within the time."""

    file: Path
    subject: str
    not_after: datetime


def expiring(files: Iterable[Path], within: timedelta, now: datetime) -> Iterator[Expiring]:
    """Reads the certificates; yields those that end within the time. Raises `OSError` and
    `ValueError` for a file that can't be read."""
    from cryptography.x509 import load_pem_x509_certificates

    for file in files:
        for one in load_pem_x509_certificates(file.read_bytes()):
            if one.not_valid_after_utc <= now + within:
                yield Expiring(file, one.subject.rfc4514_string(), one.not_valid_after_utc)
