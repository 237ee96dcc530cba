"""The blocks of pages of docs do what the pages say, and no page with programs is left out."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import httpx
import msgspec
import polars
import pytest
import yaml

from tests.support.http import Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from tests.support.terminals import TIMEOUT_S, Terminals, shows
from warrenmq.app.commands.login import profiles_file, read_login
from warrenmq.app.configuration.loading import load
from warrenmq.app.documents.access import AuditEntry
from warrenmq.app.documents.common import Quarantine
from warrenmq.hub.storage.schema import DATABASE_NAME

TESTS = Path(__file__).parent
DOCS = TESTS.parent / "docs"
PROGRAMS = re.compile(r"^ *```(?:sh|python|js|java|go|rust)\n", re.MULTILINE)
TRIED_IN = {
    "test_pages.py": (
        "commands", "damage", "durability", "http", "live", "metrics", "network", "operations",
        "queues", "security", "streams", "transactions", "tunnels",
    ),
    "test_first_steps.py": ("first-steps",),
    "test_hub_document.py": ("hub",),
    "test_guides.py": ("guides/from-rabbithub", "guides/from-rabbitmq", "guides/from-svix"),
    "app/test_feeds_document.py": ("feeds",),
    "app/testing/test_document.py": ("testing",),
    "browser/test_docs.py": ("browser",),
    "conformance/test_promises_on_rabbitmq.py": ("scaling",),
    "clients/test_webhook_guide.py": ("guides/webhooks",),
    "clients/tutorial.py": ("tutorial/README", *(f"tutorial/{step}" for step in (
        "1-work-queue", "2-publish-subscribe", "3-routing", "4-topics", "5-rpc", "6-confirms",
    ))),
    "pipeline/test_docs.py": ("pipeline",),
}  # fmt: skip
"""Which test tries the blocks of which pages."""
GUEST = ("guest", "guest")


def text(page: str) -> str:
    return (DOCS / f"{page}.md").read_text()


def blocks(page: str, fence: str) -> list[str]:
    return re.findall(rf"^```{fence}\n(.*?)^```", text(page), re.MULTILINE | re.DOTALL)


@pytest.fixture
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=warren.http_url, auth=GUEST, timeout=TIMEOUT_S) as client:
        yield client


Open = Callable[..., Terminals]


@pytest.fixture
def terminals(warren: WarrenServer, tmp_path: Path) -> Iterator[Open]:
    """Opens terminals for the blocks of a page, in which some texts are replaced."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    opened: list[Terminals] = []

    def open_for(page: str, replaced: Mapping[str, str] | None = None) -> Terminals:
        words = text(page)
        for old, new in (replaced or {}).items():
            assert old in words
            words = words.replace(old, new)
        opened.append(Terminals(words, tmp_path, warren))
        return opened[-1]

    yield open_for
    for one in opened:
        one.close()


def test_every_page_with_programs_is_tried() -> None:
    pages = {path.relative_to(DOCS).with_suffix("").as_posix(): path for path in DOCS.rglob("*.md")}
    programs = {name for name, path in pages.items() if PROGRAMS.search(path.read_text())}
    tried = [page for found in TRIED_IN.values() for page in found]
    assert len(tried) == len(set(tried)) and programs <= set(tried) <= pages.keys()
    for test in TRIED_IN:
        assert (TESTS / test).is_file(), test


def test_http(terminals: Open, http: httpx.Client) -> None:
    page = terminals("http")
    page.run(page.example("/api/users/anders"))
    assert http.get("/api/whoami", auth=("anders", "a long one")).json()["tags"] == ["management"]
    assert http.get("/api/policies/%2F/short").json()["definition"]["max-length"] == 1_000


def test_live(terminals: Open, http: httpx.Client, callback: Callback, tmp_path: Path) -> None:
    page = terminals("live")
    page.callback_port = callback.port
    page.run(page.example("/endpoint/q/jobs"))
    token = json.loads(page.run(page.example("/api/hub/tokens")))["token"]
    assert token.startswith("warren_")

    read = [page.start(page.example(one)) for one in ("/stream/x/news?", "--key 'eu.#'")]
    page.start(page.example("--exec"))
    page.start(page.example("--forward"))

    def has_readers() -> bool:
        return "\nwarren_live_readers 4\n" in http.get("/metrics").text

    wait_until(has_readers, TIMEOUT_S, "four readers")
    http.post("/endpoint/x/news", params={"hub.topic": "eu.fr"}, content=b"bonjour")
    http.post("/endpoint/q/jobs", content=b"wash the dishes")
    for output in read:
        shows(output, '"bonjour"}')
    done = tmp_path / "jobs.txt"
    wait_until(lambda: done.exists() and done.read_text() == "wash the dishes", TIMEOUT_S, "a job")
    assert callback.wait(1, TIMEOUT_S)[0].headers["X-AMQP-Routing-Key"] == "eu.fr"


def test_queues(warren: WarrenServer) -> None:
    (program,), (shown,) = blocks("queues", "python"), blocks("queues", "text")
    program = program.replace("5672", str(warren.amqp_port))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert (done.stdout, done.stderr) == (shown, "")


def test_security(terminals: Open) -> None:
    page = terminals("security")
    login, session = page.run(page.example("/api/warren/login")).split("}")[:2]
    assert '"name":"guest"' in login and '"name":"guest"' in session
    assert json.loads(page.run(page.example("/api/whoami")))["name"] == "guest"


@pytest.mark.parametrize(
    ("page", "fence", "kind"),
    [("security", "json", AuditEntry), ("damage", "console", Quarantine)],
)
def test_documents_have_the_form_of_the_api(page: str, fence: str, kind: Any) -> None:
    (block,) = blocks(page, fence)
    msgspec.convert(json.loads(block[block.index("{") :]), kind)


def test_durability(terminals: Open, tmp_path: Path) -> None:
    with WarrenServer(data=tmp_path / "warren-data"):
        pass
    page = terminals("durability")
    page.run(page.example("warren verify"))
    assert json.loads((tmp_path / "definitions.json").read_text())["users"]


def test_a_backup_is_restored(terminals: Open, http: httpx.Client, tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("eleven purple rabbits\n")
    admin = {"password": secret.read_text().strip(), "tags": "administrator"}
    http.put("/api/users/admin", json=admin).raise_for_status()
    page = terminals("operations", {
        "/etc/warren/password": str(secret), "/backup/": f"{tmp_path}/",
        "/var/lib/warren-restored": str(tmp_path / "restored"),
    })  # fmt: skip
    page.run(page.example("warren backup"))
    with WarrenServer(data=tmp_path / "restored") as restored:
        assert httpx.get(f"{restored.http_url}/api/users/admin", auth=GUEST).is_success


def test_going_back_to_an_older_schema(tmp_path: Path) -> None:
    with WarrenServer(data=tmp_path) as server:
        server.rest()
    (program,) = (one for one in blocks("operations", "python") if "downgrade" in one)
    program = program.replace("/var/lib/warren/", f"{tmp_path}/")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=TIMEOUT_S)
    with sqlite3.connect(tmp_path / DATABASE_NAME) as database:
        assert database.execute("SELECT version_num FROM alembic_version").fetchall() == [("0014",)]


def test_a_server_with_spans_starts(terminals: Open, tmp_path: Path) -> None:
    page = terminals("operations")
    page.environment |= {
        "WARREN_DATA": str(tmp_path / "data"), "WARREN_HTTP_PORT": "0", "WARREN_AMQP_PORT": "0",
        "WARREN_DRAIN_S": "0.1",
    }  # fmt: skip
    shows(page.start(page.example("OTEL_SERVICE_NAME")), "ready after")


def test_settings_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "warren.toml"
    (proxy,) = blocks("operations", "toml")
    file.write_text(proxy)
    assert load({"config": str(file)}, {}).public_url == "https://hub.example.org"
    (hosts,) = blocks("network", "toml")
    file.write_text('tls_cert = "own.pem"\ntls_key = "own.key"\n' + hosts)
    assert load({"config": str(file)}, {}).tls_host_files()["*.example.org"].cert == "example.pem"


def test_profiles(tmp_path: Path) -> None:
    environment = {"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}
    (block,) = blocks("commands", "toml")
    password = tmp_path / "password"
    password.write_text("secret\n")
    file = profiles_file(environment)
    file.parent.mkdir()
    file.write_text(block.replace("~/.config/warren/password", str(password)))
    assert read_login({}, environment).password == "secret"
    assert read_login({"profile": "page"}, environment).token
    assert set(tomllib.loads(block)) == {"default", "page"}


def test_prometheus_reads_the_server(warren: WarrenServer, tmp_path: Path) -> None:
    (block,) = blocks("metrics", "yaml")
    (job,) = yaml.safe_load(block)["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["localhost:15672"]}]
    assert httpx.get(f"{warren.http_url}/metrics").is_success
    if shutil.which("promtool"):
        file = tmp_path / "prometheus.yml"
        file.write_text(block)
        subprocess.run(["promtool", "check", "config", str(file)], check=True, timeout=TIMEOUT_S)


def test_a_tunnel(terminals: Open, callback: Callback, warren: WarrenServer) -> None:
    page = terminals("tunnels", {"warren tunnel 8000": f"warren tunnel {callback.port}"})
    output = page.start(page.example("--label ada"))
    shows(
        output,
        f"  http://ada.tun.localhost:{warren.http_port}/ -> http://127.0.0.1:{callback.port}",
    )
    host = {"Host": f"ada.tun.localhost:{warren.http_port}"}
    assert httpx.get(f"{warren.http_url}/hi?x=1", headers=host).is_success
    shows(output, "GET /hi?x=1  200")


def test_streams(warren: WarrenServer, http: httpx.Client) -> None:
    http.put("/endpoint/q/news-log", params={"arg.x-queue-type": "stream"}).raise_for_status()
    for body in ("one", "two"):
        http.post("/endpoint/q/news-log", params={"hub.topic": "eu.fr"}, content=body)
    (program,) = blocks("streams", "python")
    (url,) = re.findall(r'`url = "(\S+)"`', text("streams"))
    url = url.replace("localhost:15672", f"{warren.host}:{warren.http_port}")
    names: dict[str, Any] = {"url": url, "polars": polars, "duckdb": duckdb}
    exec(program, names)
    assert names["rows"].column("body").to_pylist() == [b"one", b"two"]


def test_transactions(http: httpx.Client) -> None:
    http.put("/endpoint/x/news", params={"amqp.exchange_type": "topic"}).raise_for_status()
    (program,) = blocks("transactions", "python")
    names: dict[str, Any] = {}
    exec(program, names)
    piece = names["rows"]([(b"eu.fr", b"one"), (b"eu.de", b"two")])
    kind = {"Content-Type": "application/vnd.warren.rows"}
    path, query = "/transactions/query/0", {"exchange": "news"}
    http.put(f"{path}/0/7/0", params=query, content=piece, headers=kind).raise_for_status()
    done = http.post(path, params=query, json={"attempts": [[0, 7, 1]]})
    (shown,) = blocks("transactions", "json")
    assert done.json().keys() == json.loads(shown).keys()
    assert done.json()["published"] == 2
