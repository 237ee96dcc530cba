"""`warren serve` with certificates: what it listens on, and what it can't start with."""

from __future__ import annotations

import socket
from pathlib import Path

import httpx
import pytest

from tests.app.support import refusal
from tests.support.certificates import Authority
from tests.support.ports import free_port
from tests.support.server import WarrenServer


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


def test_https_and_amqps(authority: Authority) -> None:
    cert, key = authority.issue("localhost", "127.0.0.1")
    port = free_port()
    args = ["--amqps-port=0", f"--https-port={port}", f"--tls-cert={cert}", f"--tls-key={key}"]
    with WarrenServer(args=args) as server:
        lines = server.output().splitlines()
        assert [line.rpartition(":")[0] for line in lines[:4]] == [
            f"listening on {kind}://127.0.0.1" for kind in ("amqp", "amqps", "http", "https")
        ]
        assert not lines[1].endswith(":0")
        with httpx.Client(verify=authority.client_context(), auth=("guest", "guest")) as client:
            made = client.put(f"https://localhost:{port}/endpoint/q/a")
        assert made.status_code == 201
        assert made.headers["location"] == f"https://localhost:{port}/endpoint/q/a"


def test_unusable_certificates_are_refused(authority: Authority, tmp_path: Path) -> None:
    cert, key = authority.issue("localhost")
    other_key = authority.issue("localhost", file="other")[1]
    missing = str(tmp_path / "missing.pem")
    files = [f"--tls-cert={cert}", f"--tls-key={key}"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cases = [
            ([f"--tls-cert={missing}", f"--tls-key={key}"],
             f"warren: tls: certificate {missing}: No such file or directory\n"),
            ([f"--tls-cert={cert}", f"--tls-key={other_key}"],
             f"warren: tls: certificate {cert} with key {other_key}: key values mismatch\n"),
            (["--amqps-port=0"],
             "warren: amqps_port is set, but tls_cert and tls_key are not\n"),
            ([*files, f"--amqps-port={port}"],
             f"warren: amqps: can't listen on 127.0.0.1 port {port}: Address already in use; "
             "stop the process that uses it, or choose another port with --amqps-port\n"),
        ]  # fmt: skip
        listening = [
            f"--data={tmp_path}/data",
            "--host=127.0.0.1",
            "--amqp-port=0",
            "--http-port=0",
        ]
        for flags, complaint in cases:
            assert refusal("serve", *listening, *flags) == complaint
