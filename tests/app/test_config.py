"""Where settings come from, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from warrenmq.app.configuration.descriptions import describe
from warrenmq.app.configuration.loading import NAMES, TYPES, load
from warrenmq.app.configuration.parsers import HostFiles
from warrenmq.app.configuration.settings import Settings
from warrenmq.app.configuration.types import SIZE
from warrenmq.core.errors import ConfigError
from warrenmq.core.resources.amount import Amount


def test_defaults() -> None:
    settings = load({}, {})
    assert settings == Settings()
    assert (settings.data, settings.host) == ("./warren-data", "localhost")
    assert (settings.amqp_port, settings.http_port) == (5672, 15672)
    assert (settings.default_user, settings.default_pass) == ("guest", "guest")
    assert settings.max_message_bytes == 16 * 1024 * 1024
    assert not settings.dev


def test_order_of_sources(tmp_path: Path) -> None:
    file = tmp_path / "warren.toml"
    file.write_text('host = "file"\namqp_port = 1\nhttp_port = 1\ndev = true\n')
    environment = {"WARREN_AMQP_PORT": "2", "WARREN_HTTP_PORT": "2", "WARREN_CONFIG": str(file)}
    settings = load({"http_port": "3"}, environment)
    assert (settings.host, settings.amqp_port, settings.http_port) == ("file", 2, 3)
    assert settings.dev
    other = tmp_path / "other.toml"
    other.write_text('host = "other"\n')
    assert load({"config": str(other)}, environment).host == "other"


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("true", True), ("0", False), ("false", False)]
)
def test_values_of_a_flag(text: str, value: bool) -> None:
    assert load({}, {"WARREN_DEV": text}).dev is value


def test_variables_of_orchestrators_are_ignored() -> None:
    load({}, {
        "WARREN_PORT": "tcp://10.0.0.1:5672",
        "WARREN_PORT_5672_TCP_ADDR": "10.0.0.1",
        "WARREN_SERVICE_HOST": "10.0.0.1",
        "WARREN_SERVICE_PORT_AMQP": "5672",
        "WARREN_MAIN_SERVICE_PORT": "5672",
        "PATH": "/bin",
    })  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "environment", "message"),
    [
        ({"http_port": "70000"}, {}, "command line: http_port: a port from 0 to 65535; got '7"),
        ({}, {"WARREN_HTTP_PORT": ""}, "environment: http_port: "),
        (
            {}, {"WARREN_HTTPPORT": "1"},
            "environment: unknown setting WARREN_HTTPPORT; did you mean WARREN_HTTP_PORT?",
        ),
        ({}, {"WARREN_DEV": "maybe"}, "environment: dev: true or false; got 'maybe'"),
        ({}, {"WARREN_DEFAULT_PASS": ""}, "environment: default_pass: "),
        ({"base_path": "no/slash"}, {}, "command line: base_path: "),
        ({"public_url": "ftp://hub"}, {}, "command line: public_url: "),
        ({"set_message_id": "a b"}, {}, "command line: set_message_id: "),
        (
            {"log_level": "loud"}, {},
            "command line: log_level: one of debug, info, warning, error; got 'loud'",
        ),
        ({"drain_s": "0"}, {}, "command line: drain_s: seconds, more than 0 and at most 86400;"),
        ({"max_rate": "-1"}, {}, "command line: max_rate: a number from 0 up; got '-1'"),
        ({"default_user": ""}, {}, "command line: default_user: 1 to 255 characters; got ''"),
        ({"host": ""}, {}, "command line: host: a text, not empty; got ''"),
        ({}, {"WARREN_MEMORY_LIMIT": "5MX"}, "environment: memory_limit: '5MX': unknown unit 'MX'"),
        ({"max_lease_s": "5"}, {}, "default_lease_s is 2592000, more than max_lease_s 5"),
        ({"hub_max_lease_s": "5"}, {}, "hub_default_lease_s is 864000, more than hub_max_lease_s"),
        ({"hub_moved_to": "elsewhere"}, {}, "command line: hub_moved_to: "),
        ({"engine": "rabbit"}, {}, "command line: engine: neither `embedded` nor a URL amqp://"),
        ({"engine": "amqp://a/"}, {}, "command line: engine: user and password are needed"),
        ({"engine": "amqp://a:b@c/d"}, {}, "command line: engine: the hub serves all virtual "),
        ({"engine_management": "http://a"}, {}, "engine_management is set, but engine is embedded"),
        ({"config": "/nowhere/at/all"}, {}, "file /nowhere/at/all: No such file"),
        ({}, {"WARREN_SEGMENT_BYTES": "1KiB"},
         "environment: segment_bytes: a size from 64KiB to 2GiB; got '1KiB'"),
        *(
            ({"segment_bytes": size}, {},
             f"command line: segment_bytes: '{size}' is neither a number of bytes nor a size like")
            for size in ("0.5", "many", "-1", "5MX", "")
        ),
        (
            {"amqp_port": "auto"}, {},
            "command line: amqp_port: a port from 0 to 65535 or 'none'; got 'auto'",
        ),
        (
            {"amqps_port": "70000"}, {},
            "command line: amqps_port: a port from 0 to 65535, 'auto' or 'none'; got '70000'",
        ),
        ({"proxy_protocol_from": "10.0.0.1/8"}, {}, "command line: proxy_protocol_from: '10."),
        ({"websocket_origins": "a.org"}, {}, "command line: websocket_origins: 'a.org' is neither"),
        ({"websocket_origins": "null"}, {}, "command line: websocket_origins: 'null' is neither"),
        ({"cors_origins": "a.org"}, {}, "command line: cors_origins: 'a.org' is neither"),
        ({"tunnel_domain": "Tun.example.net"}, {}, "command line: tunnel_domain: a domain like"),
        ({"tunnel_body_bytes": "0"}, {},
         "command line: tunnel_body_bytes: a size of 1 byte or more; got '0'"),
        ({"relay_hosts": "http://a"}, {}, "command line: relay_hosts: 'http://a' is no host like"),
        (
            {"tunnel_domain": "example.org", "public_url": "https://hub.example.org"}, {},
            "tunnel_domain is example.org, which includes the host of public_url",
        ),
        ({"tls_hosts": "a=b"}, {}, "command line: tls_hosts: 'a=b' is not of the form"),
        ({"allow_networks": "::1"}, {}, "command line: allow_networks: '::1/128' is loopback"),
        ({}, {"WARREN_CALLBACK_PORTS": "0"}, "environment: callback_ports: '0' is not a port"),
        (
            {"tls_verify_clients": "maybe"}, {},
            "command line: tls_verify_clients: one of none, optional, required; got 'maybe'",
        ),
        ({"tls_cert": "a"}, {}, "tls_cert is set, but tls_key is not"),
        ({"tls_key": "a"}, {}, "tls_key is set, but tls_cert is not"),
        ({"amqps_port": "5671"}, {}, "amqps_port is set, but tls_cert and tls_key are not"),
        ({"https_port": "0"}, {}, "https_port is set, but tls_cert and tls_key are not"),
        ({"tls_ca": "ca"}, {}, "tls_ca is set, but tls_cert and tls_key are not"),
        ({"tls_hosts": "a=b:c"}, {}, "tls_hosts is set, but tls_cert and tls_key are not"),
        ({"tls_verify_clients": "required"}, {}, "tls_verify_clients is required, but tls_ca"),
        ({"tls_login_from": "distinguished_name"}, {}, "tls_login_from is distinguished_name, but"),
    ],
)  # fmt: skip
def test_bad_values_are_refused(
    flags: dict[str, Any], environment: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError) as refusal:
        load(flags, environment)
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)


def test_every_size_may_have_a_unit() -> None:
    names = [name for name in NAMES if SIZE in getattr(TYPES[name], "__metadata__", ())]
    assert {name for name in NAMES if name.endswith("_bytes")} <= {*names}
    for name in names:
        assert getattr(load({name: "64KiB"}, {}), name) == 65_536


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (67_108_864, 67_108_864), ("67108864", 67_108_864), ("128MiB", 128 * 1024**2),
        ("1 MB", 10**6), ("65536B", 65_536),
    ],
)  # fmt: skip
def test_sizes(written: str | int, size: int) -> None:
    assert load({"max_message_bytes": written}, {}).max_message_bytes == size


@pytest.mark.parametrize("name", ["database", "default_pass", "hub_publisher_secret"])
def test_a_refused_secret_is_not_repeated(tmp_path: Path, name: str) -> None:
    file = tmp_path / "warren.toml"
    file.write_text(f"{name} = 13579\n")
    with pytest.raises(ConfigError) as refusal:
        load({"config": str(file)}, {})
    assert f"{name}: a text" in str(refusal.value)
    assert "13579" not in str(refusal.value)


def test_each_setting_has_a_description_of_its_values() -> None:
    assert [name for name in NAMES if not describe(TYPES[name])] == ["tls_hosts"]


def test_a_cluster_has_nodes_and_management() -> None:
    found = load({"engine": "amqps://me:a%2Fb@one,two:1,[::1]/"}, {}).engine_address()
    assert found is not None
    assert found.nodes == (("one", 5671), ("two", 1), ("::1", 5671))
    assert (found.user, found.password) == ("me", "a/b")
    assert found.management[2] == "https://[::1]:15671"
    assert "a/b" not in found.names


CERTIFICATE = {"tls_cert": "cert", "tls_key": "key"}


@pytest.mark.parametrize(
    ("flags", "port"),
    [
        ({}, None),
        (CERTIFICATE, 5671),
        ({**CERTIFICATE, "amqps_port": "0"}, 0),
        ({**CERTIFICATE, "amqps_port": "none"}, None),
        ({"amqps_port": "none"}, None),
    ],
)
def test_port_of_amqps(flags: dict[str, str], port: int | None) -> None:
    assert load(flags, {}).effective_amqps_port() == port


def test_certificates_by_host_name(tmp_path: Path) -> None:
    file = tmp_path / "warren.toml"
    file.write_text(
        'tls_cert = "cert"\ntls_key = "key"\n'
        '[tls_hosts."*.example.org"]\ncert = "a.pem"\nkey = "a.key"\n'
    )
    in_file = load({"config": str(file)}, {}).tls_host_files()
    assert in_file == {"*.example.org": HostFiles("a.pem", "a.key")}
    assert (
        load({**CERTIFICATE, "tls_hosts": "*.example.org=a.pem:a.key"}, {}).tls_host_files()
        == in_file
    )
    file.write_text('[tls_hosts."example.org"]\ncert = "a.pem"\n')
    with pytest.raises(ConfigError, match="missing required field `key`"):
        load({"config": str(file)}, {})


def test_amounts(tmp_path: Path) -> None:
    assert Settings().memory_amount() == Amount(0, 0.6)
    assert Settings().disk_free_amount() is None
    settings = load({"memory_limit": "512MiB", "disk_free_limit": "0"}, {})
    assert settings.memory_amount() == Amount(512 * 1024**2, 0.0)
    assert settings.disk_free_amount() == Amount(0, 0.0)
    file = tmp_path / "warren.toml"
    file.write_text('memory_limit = 0.4\ndisk_free_limit = "2GB"\n')
    settings = load({"config": str(file)}, {})
    assert settings.memory_amount() == Amount(0, 0.4)
    assert settings.disk_free_amount() == Amount(2 * 10**9, 0.0)


@pytest.mark.parametrize(
    ("flags", "rate"),
    [({}, 1_000), ({"dev": True}, 0), ({"max_rate_per_origin": "0"}, 0),
     ({"max_rate_per_origin": "7", "dev": True}, 7)],
)  # fmt: skip
def test_rate_per_origin(flags: dict[str, Any], rate: int) -> None:
    assert load(flags, {}).rate_per_origin() == rate


def test_networks_and_ports_of_callbacks(tmp_path: Path) -> None:
    assert Settings().allowed_callback_networks() == ()
    assert Settings().allowed_callback_ports() == frozenset({80, 443})
    settings = load({"allow_networks": "10.0.0.0/8", "callback_ports": "any"}, {})
    assert [str(one) for one in settings.allowed_callback_networks()] == ["10.0.0.0/8"]
    assert settings.allowed_callback_ports() is None
    file = tmp_path / "warren.toml"
    file.write_text("callback_ports = 8080\n")
    assert load({"config": str(file)}, {}).allowed_callback_ports() == frozenset({8080})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"prot = 1", "unknown setting prot"),
        (b'config = "other"', "unknown setting config"),
        (b'http_port = "high"', "http_port: "),
        (b"[host]\nname = 1", "host: "),
        (b"= 1", "Invalid"),
        (b"\xff", "utf-8"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "warren.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        load({"config": str(file)}, {})


def test_a_database_is_checked_and_its_password_not_repeated() -> None:
    url = "postgresql+asyncpg://user:s3cret@db.example/hub"
    assert load({"database": url}, {}).database == url
    for source, flags, environment in (
        ("command line", {"database": "s3cret@db"}, {}),
        ("environment", {}, {"WARREN_DATABASE": "mysql://user:s3cret@db/hub"}),
    ):
        with pytest.raises(ConfigError, match=f"{source}: database: is no PostgreSQL") as caught:
            load(flags, environment)
        assert "s3cret" not in str(caught.value)
