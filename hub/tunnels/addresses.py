"""Public URLs of tunnels: each label is a host below one domain, on any port."""

from __future__ import annotations

from urllib.parse import urlsplit


class TunnelAddresses:
    """The public URLs of labels. `url` has scheme, domain and port:
    `http://tun.localhost:15672`."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._scheme = parts.scheme
        self._authority = parts.netloc
        self.domain = parts.hostname or ""
        self._suffix = "." + self.domain

    def public_url(self, label: str) -> str:
        return f"{self._scheme}://{label}.{self._authority}/"

    def label_of(self, host: str) -> str | None:
        """Returns the label of a host name, empty for the domain itself, and None for a host that
        is not below it. The port of a Host field is ignored: a proxy may listen at another one."""
        name = host.partition(":")[0].lower().removesuffix(".")
        if name.endswith(self._suffix):
            return name[: -len(self._suffix)]
        return "" if name == self.domain else None

    def has(self, host: str) -> bool:
        """Returns whether a host name is the domain or below it."""
        return self.label_of(host) is not None

    def has_url(self, url: str) -> bool:
        """Returns the same for the host of a URL that was checked before."""
        return self.domain in url.lower() and self.has(urlsplit(url).hostname or "")

    def is_below(self, label: str, url: str) -> bool:
        """Returns whether such a URL leads to the application with the label."""
        return self.has_url(url) and self.label_of(urlsplit(url).hostname or "") == label
