"""This hub's own URLs: they are never posted to, but a token can bind them."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import SplitResult, unquote, urlsplit

from ..requests import Kind, Resource

DEFAULT_PORTS = {"http": 80, "https": 443}
_ALIASES = ("", "/rabbithub")
_KINDS: dict[str, Kind] = {"x": "x", "q": "q"}


def endpoint_of(url: str, base_urls: Iterable[str]) -> Resource | None:
    """Returns the resource whose `/endpoint` URL below one of the bases this is, else None."""
    path = path_below(url, base_urls)
    return None if path is None or "?" in url else _resource(path)


def path_below(url: str, base_urls: Iterable[str]) -> str | None:
    """Returns the path of a URL below the base path that it has, else None."""
    split = _split(url)
    if split is None or split.fragment or "@" in split.netloc:
        return None
    bases = [base for base in map(_split, base_urls) if base is not None]
    if _address(split) not in {_address(base) for base in bases}:
        return None
    prefixes = {base.path.rstrip("/") for base in bases}.union(_ALIASES)
    for prefix in sorted(prefixes, key=len, reverse=True):
        if split.path.startswith(prefix + "/"):
            return split.path[len(prefix) :]
    return None


def is_own(url: str, base_urls: Iterable[str]) -> bool:
    """Returns whether the URL's host and port are the hub's, with any path and scheme."""
    split = _split(url)
    if split is None:
        return False
    return _address(split) in {_address(base) for base in map(_split, base_urls) if base}


def _resource(path: str) -> Resource | None:
    """Reads `/endpoint/q/name` or `/vhost/endpoint/q/name`, each segment decoded once."""
    match [unquote(segment) for segment in path.split("/")]:
        case ["", "endpoint", ("x" | "q") as kind, name]:
            return Resource("/", _KINDS[kind], name)
        case ["", vhost, "endpoint", ("x" | "q") as kind, name]:
            return Resource(vhost, _KINDS[kind], name)
    return None


def _split(url: str) -> SplitResult | None:
    try:
        split = urlsplit(url)
        return split if split.scheme in DEFAULT_PORTS and split.port != 0 else None
    except ValueError:
        return None


def _address(split: SplitResult) -> tuple[str, int | None]:
    # A proxy may terminate TLS, so http and https at their default ports are equal.
    port, host = split.port, (split.hostname or "").removesuffix(".")
    return (host, None if port == DEFAULT_PORTS[split.scheme] else port)
