"""Types with bounds, and metadata, for the declarations of settings.

Errors about a refused value use the `description` of a type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from msgspec import Meta


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of the help text that begins with this setting."""

    text: str


SECRET: Final = object()
"""Marks a setting whose value never appears in messages."""

SIZE: Final = object()
"""Marks a number of bytes, which may be written with a unit, such as 16MiB."""

Positive = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[int, Meta(ge=0)]
PositiveSize = Annotated[int, Meta(ge=1, description="a size of 1 byte or more"), SIZE]
Port = Annotated[int, Meta(ge=0, le=65535, description="a port from 0 to 65535")]
Seconds = Annotated[
    float, Meta(gt=0, le=86_400, description="seconds, more than 0 and at most 86400")
]
LogFormat = Literal["text", "json"]
MetricsReaders = Literal["local", "anyone", "users"]
HeaderName = Annotated[
    str,
    Meta(
        pattern=r"^([A-Za-z0-9-]{1,64})?$",
        description="a header's name of at most 64 letters, digits and dashes",
    ),
]
BasePath = Annotated[
    str,
    Meta(
        pattern=r"^((/[A-Za-z0-9._~-]+)+)?$",
        description="a path like /hub, without a slash at its end",
    ),
]
BaseUrl = Annotated[
    str,
    Meta(
        pattern=r"^(https?://[^\s?#@]*[^\s?#@/])?$",
        description="a URL like https://hub.example.org, without a slash at its end",
    ),
]
Url = Annotated[
    str,
    Meta(pattern=r"^(https?://[^\s?#@]+)?$", description="a URL like https://hub.example.org/hub"),
]
TunnelDomain = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+(:[0-9]{1,5})?$",
        description="a domain like tun.example.net, in lower case, with a port if it has another",
    ),
]
ProxyUrl = Annotated[
    str,
    Meta(
        pattern=r"^(http://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]+):[0-9]{1,5})?$",
        description="a URL like http://proxy.internal:4750",
    ),
]
