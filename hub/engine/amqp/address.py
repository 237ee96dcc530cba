"""Reads the URL of the engine: `amqp://USER:PASSWORD@HOST[:PORT],HOST.../`; one that begins with
`amqps` may end with `?cacertfile=FILE`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

AMQP_PORTS: Final = {"amqp": 5672, "amqps": 5671}
MANAGEMENT_PORTS: Final = {"amqp": 15672, "amqps": 15671}
_MANAGEMENT_SCHEMES: Final = {"amqp": "http", "amqps": "https"}
Node = tuple[str, int]
_ROOTS: Final = ("", "/", "/%2F", "/%2f")


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """Where the nodes of a cluster are, and the user with whom the hub works there. `management`
    has the URLs of the management API, without a slash at the end. `cacertfile` names the
    authorities that certificates are from; those of the system if it is empty."""

    scheme: str
    nodes: tuple[Node, ...]
    user: str
    password: str
    management: tuple[str, ...]
    cacertfile: str = ""

    @property
    def names(self) -> str:
        """Returns the nodes as text, without credentials."""
        return ", ".join(map(node_name, self.nodes))


def node_name(node: Node) -> str:
    return f"{node[0]}:{node[1]}"


def read_address(url: str, management: str = "") -> EngineAddress:
    """Reads the URL of the cluster and those of its management API, separated by commas; without
    one that is expected at the usual port of each node.

    Raises `ValueError` saying what is wrong; the text has no password.
    """
    scheme, _, rest = url.partition("://")
    if scheme not in AMQP_PORTS:
        raise ValueError("neither `embedded` nor a URL amqp://USER:PASSWORD@HOST/ (or amqps://)")
    rest, _, query = rest.partition("?")
    before, _, path = rest.partition("/")
    credentials, at, hosts = before.rpartition("@")
    user, _, password = credentials.partition(":")
    if not (at and user and password):
        raise ValueError("user and password are needed: amqp://USER:PASSWORD@HOST/")
    if f"/{path}" not in _ROOTS:
        raise ValueError("the hub serves all virtual hosts of the cluster: end the URL at the /")
    nodes = tuple(_node(host, AMQP_PORTS[scheme]) for host in hosts.split(","))
    return EngineAddress(
        scheme, nodes, unquote(user), unquote(password), _management(scheme, nodes, management),
        _cacertfile(scheme, query),
    )  # fmt: skip


def _cacertfile(scheme: str, query: str) -> str:
    given = dict(parse_qsl(query))
    file = given.pop("cacertfile", "")
    if given or (file and scheme != "amqps"):
        raise ValueError("after a ? there may be cacertfile=FILE alone, and with amqps:// only")
    if file and not Path(file).is_file():
        raise ValueError(f"cacertfile: '{file}' is no file")
    return file


def _node(text: str, default_port: int) -> Node:
    try:
        parts = urlsplit(f"//{text.strip()}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"'{text}' is no host: {error}") from error
    if not host:
        raise ValueError(f"'{text}' is no host")
    return host, port or default_port


def _management(scheme: str, nodes: tuple[Node, ...], given: str) -> tuple[str, ...]:
    urls = tuple(url.strip().rstrip("/") for url in given.split(",") if url.strip())
    for url in urls:
        parts = urlsplit(url)
        if parts.scheme not in _MANAGEMENT_SCHEMES.values() or not parts.hostname:
            raise ValueError(f"'{url}' is no URL of a management API, such as http://HOST:15672")
    usual = f"{_MANAGEMENT_SCHEMES[scheme]}://{{}}:{MANAGEMENT_PORTS[scheme]}"
    return urls or tuple(usual.format(f"[{host}]" if ":" in host else host) for host, _ in nodes)
