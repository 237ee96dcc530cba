"""The settings and limits of tunnels."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TunnelSettings:
    """The settings of tunnels. Times are in seconds; `app/configuration/parts.py` fills in what a
    user has set."""

    url: str = "http://tun.localhost"
    """Scheme, domain and port of public URLs; each label is a host below that domain."""
    is_on: bool = True
    is_open: bool = False
    """Whether labels can be enrolled without credentials; set by `--dev`."""
    allows_weak_tokens: bool = False
    """Whether a token may be short, as `-`, which older client libraries send; set by `--dev`."""

    max_body_bytes: int = 1024 * 1024
    """The limit of a request and of a reply: both are in memory as a whole."""
    max_bytes: int = 64 * 1024 * 1024
    """Of all requests that have no reply yet, and of all replies that requestors have not read;
    each owner has a part of it (`budget.py`)."""
    max_queued: int = 64
    """Requests that wait for a poll, for each label."""
    max_in_flight: int = 32
    """Requests that a poll has taken and that have no reply yet, for each label."""
    max_polls: int = 16
    """Polls that wait at a time, for each label."""
    max_labels: int = 10_000
    """About 2 kB each."""
    max_labels_per_owner: int = 1_000
    enrolments_per_s: float = 50.0
    """The rate for each owner, and for all anonymous clients together; a new label is a row on
    disk."""

    poll_hold_s: float = 25.0
    """How long a poll waits. Proxies cut connections after 30 to 60 s of silence."""
    poll_wait_s: float = 2.0
    """How long a request waits for a poll, if none came within `recent_poll_s`."""
    seen_poll_wait_s: float = 30.0
    """The same if one did: clients back off for up to 32 s, and hidden pages are slow."""
    recent_poll_s: float = 60.0
    reply_wait_s: float = 60.0
    label_lifetime_s: float = 86_400.0
    """How long a lapsed label is kept, with its token: clients go on polling and never enrol
    again."""
