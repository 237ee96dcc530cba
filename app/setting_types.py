"""Types of settings with constraints.

Error messages for a refused value use `description`.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Port = Annotated[int, Meta(ge=0, le=65535, description="a port from 0 to 65535")]
Seconds = Annotated[
    float, Meta(gt=0, le=86_400, description="seconds, more than 0 and at most 86400")
]
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
ProxyUrl = Annotated[
    str,
    Meta(
        pattern=r"^(http://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]+):[0-9]{1,5})?$",
        description="a URL like http://proxy.internal:4750",
    ),
]
