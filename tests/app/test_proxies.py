"""The configurations of proxies in docs/operations.md, with real proxies in front of a server."""

from __future__ import annotations

import json
import re
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pika
import pytest
from websockets.sync.client import connect

from tests.support.certificates import Authority
from tests.support.ports import accepts, free_port
from tests.support.process import terminate, wait_until
from tests.support.server import WarrenServer

DOCUMENT = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
USER, PASSWORD = "ada", "eleven purple rabbits"
HOST = "localhost"
START_S, WAIT_S = 30.0, 10.0
PROXIES = ("nginx", "haproxy", "caddy")


class Proxied:
    """A server behind a proxy: the proxy's ports, and a context that trusts its certificate."""

    def __init__(self, server: WarrenServer, https: int, amqps: int, context: ssl.SSLContext):
        self.server, self.https, self.amqps, self.context = server, https, amqps, context

    def client(self) -> httpx.Client:
        url = f"https://{HOST}:{self.https}"
        return httpx.Client(
            base_url=url, auth=(USER, PASSWORD), verify=self.context, timeout=WAIT_S
        )


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", DOCUMENT, flags=re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def replaced(text: str, **changes: str) -> str:
    """The text with names of the example replaced by those of the test; each must be there."""
    for name, value in changes.items():
        found = {"hub": "hub.example.org", "http": "127.0.0.1:15672", "amqp": "127.0.0.1:5672",
                 "cert": "/etc/ssl/hub.pem", "key": "/etc/ssl/hub.key",
                 "both": "/etc/haproxy/hub.pem", "https": "443", "amqps": "5671"}[name]  # fmt: skip
        assert found in text, found
        text = text.replace(found, value)
    return text


def nginx(place: Path, cert: str, key: str, ports: dict[str, str]) -> list[str]:
    text = replaced(block("nginx"), **{**ports, "hub": HOST, "cert": cert, "key": key})
    paths = "".join(
        f"{one}_temp_path {place / one};\n"
        for one in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    main = f"daemon off;\npid {place}/pid;\nerror_log stderr;\nevents {{}}\n"
    file = place / "nginx.conf"
    file.write_text(f"{main}http {{\n{paths}{text}}}\n")
    return ["nginx", "-p", str(place), "-c", str(file)]


def haproxy(place: Path, cert: str, key: str, ports: dict[str, str]) -> list[str]:
    both = place / "both.pem"
    both.write_text(Path(cert).read_text() + Path(key).read_text())
    file = place / "haproxy.cfg"
    file.write_text(replaced(block("haproxy"), **{**ports, "both": str(both)}))
    return ["haproxy", "-db", "-f", str(file)]


def caddy(place: Path, cert: str, key: str, ports: dict[str, str]) -> list[str]:
    text = replaced(block("caddy"), hub=f"https://{HOST}:{ports['https']}", http=ports["http"])
    # Instead of a certificate from an authority on the net.
    text = text.replace("{\n", f"{{\n    tls {cert} {key}\n", 1)
    file = place / "Caddyfile"
    file.write_text(
        f"{{\n    admin off\n    grace_period 1s\n    auto_https disable_redirects\n}}\n{text}"
    )
    return ["caddy", "run", "--config", str(file), "--adapter", "caddyfile"]


MAKERS: dict[str, Callable[[Path, str, str, dict[str, str]], list[str]]] = {
    "nginx": nginx, "haproxy": haproxy, "caddy": caddy,
}  # fmt: skip


@contextmanager
def running(command: list[str], place: Path, port: int) -> Iterator[None]:
    log = place / "proxy.log"
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(place)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        wait_until(lambda: process.poll() is not None or accepts(port), START_S, command[0])
        assert process.poll() is None, log.read_text()
        yield
    finally:
        terminate(process, WAIT_S)


@pytest.fixture(scope="module", params=PROXIES)
def proxied(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxied]:
    name: str = request.param
    if shutil.which(name, path="/usr/sbin:/usr/bin") is None:
        pytest.skip(f"{name} is not installed")
    place = tmp_path_factory.mktemp(name)
    authority = Authority(place)
    cert, key = authority.issue(HOST)
    https, amqps = free_port(), free_port()
    settings = {
        "WARREN_DEFAULT_USER": USER,
        "WARREN_DEFAULT_PASS": PASSWORD,
        "WARREN_HTTP_PROXIES": "127.0.0.1",
        "WARREN_PUBLIC_URL": f"https://{HOST}:{https}",
    }
    if name == "haproxy":
        settings["WARREN_PROXY_PROTOCOL_FROM"] = "127.0.0.1"
    with WarrenServer(dev=False, env=settings) as server:
        ports = {"https": str(https), "http": f"127.0.0.1:{server.http_port}"}
        if name == "haproxy":
            ports |= {"amqps": str(amqps), "amqp": f"127.0.0.1:{server.amqp_port}"}
        with running(MAKERS[name](place, cert, key, ports), place, https):
            yield Proxied(server, https, amqps, authority.client_context())


def test_requests_reach_the_server_as_they_were_sent(proxied: Proxied) -> None:
    with proxied.client() as client:
        made = client.put("/endpoint/x/a%2Fb", data={"amqp.exchange_type": "topic"})
        assert made.is_success, made.text
        described = client.get("/endpoint/x/a%2Fb", headers={"Accept": "application/json"})
        assert described.json()["name"] == "a/b"
        big = b"x" * (2 * 1024 * 1024)
        assert client.post("/endpoint/x/a%2Fb?key=k", content=big).status_code == 202
        refused = client.get("/endpoint/x/a%2Fb", auth=(USER, "wrong"))
        assert refused.status_code == 401
    wrong = httpx.get(
        f"https://{HOST}:{proxied.https}/api/whoami", auth=("guest", "guest"),
        verify=proxied.context,
    )  # fmt: skip
    assert wrong.status_code == 401


def test_streams_are_not_held_back(proxied: Proxied) -> None:
    with proxied.client() as client, proxied.client() as publisher:
        url = "/stream/x/amq.topic?key=%23"
        with client.stream("GET", url, headers={"Accept": "text/event-stream"}) as answer:
            assert answer.status_code == 200
            lines = answer.iter_lines()
            assert publisher.post("/endpoint/x/amq.topic?key=k", content=b"now").is_success
            data = next(line for line in lines if line.startswith("data:"))
    assert json.loads(data.removeprefix("data:"))["body"] == "now"


def test_websockets_pass(proxied: Proxied) -> None:
    with proxied.client() as client:
        token = client.post(
            "/api/hub/tokens", json={"name": "page", "scopes": [{"read": "x/amq.fanout"}]}
        )
        assert token.status_code == 201, token.text
        secret = token.json()["token"]
        url = f"wss://{HOST}:{proxied.https}/stream/x/amq.fanout?token={secret}"
        with connect(url, ssl=proxied.context, proxy=None) as socket:
            assert client.post("/endpoint/x/amq.fanout", content=b"there").status_code == 202
            assert any('"there"' in str(socket.recv(WAIT_S)) for _ in range(3))


@pytest.mark.parametrize("proxied", ["haproxy"], indirect=True)
def test_amqps_through_haproxy(proxied: Proxied) -> None:
    parameters = pika.ConnectionParameters(
        HOST, proxied.amqps, credentials=pika.PlainCredentials(USER, PASSWORD),
        ssl_options=pika.SSLOptions(proxied.context, HOST),
    )  # fmt: skip
    connection = pika.BlockingConnection(parameters)
    assert connection.channel().queue_declare("", exclusive=True).method.queue
    connection.close()
