"""The names that users may give to exchanges and queues."""

from __future__ import annotations

from ..errors import access_refused, precondition_failed


def check_name(kind: str, name: str, vhost: str) -> None:
    """Checks the name of a new object. Raises `ChannelError` 403 if reserved, 406 for line ends
    and NUL.

    A line end could split a header of the HTTP deliveries that carry the name; a path of HTTP can
    name nothing with a NUL.
    """
    if name.startswith("amq."):
        raise access_refused(f"{kind} name '{name}' contains reserved prefix 'amq.*'")
    if "\r" in name or "\n" in name:
        raise precondition_failed(f"{kind} name {name!r} contains a line end")
    if "\0" in name:
        raise precondition_failed(f"{kind} name {name!r} contains a NUL")
