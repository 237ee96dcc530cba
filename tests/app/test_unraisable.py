"""What Python can't raise is a line of the log, or none."""

from __future__ import annotations

import logging
import ssl
import sys
from pathlib import Path

import pytest

from tests.support.certificates import Authority
from warrenmq.app.unraisable import log_unraisable_errors
from warrenmq.core.server.certificates import CertificateFiles, Certificates


@pytest.fixture(autouse=True)
def hooked(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    caplog.set_level(logging.DEBUG)
    log_unraisable_errors()


def test_a_host_name_in_another_alphabet(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    authority = Authority(tmp_path)
    context = Certificates(CertificateFiles(*authority.issue("localhost"))).context()
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = authority.client_context().wrap_bio(to_client, to_server, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    hello = to_server.read()
    assert hello.count(b"localhost") == 1
    to_server.write(hello.replace(b"localhost", b"loc\xe4lhost"))
    with pytest.raises(ssl.SSLError):
        context.wrap_bio(to_server, to_client, server_side=True).do_handshake()
    (record,) = caplog.records
    assert record.levelno == logging.DEBUG
    assert record.getMessage() == r"a TLS client sent an invalid server name: b'loc\xe4lhost'"
    assert capsys.readouterr() == ("", "")


def test_other_unraisable_errors_are_logged_as_errors(caplog: pytest.LogCaptureFixture) -> None:
    class Failing:
        def __del__(self) -> None:
            raise ValueError("a defect")

    Failing()
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "exception ignored in" in record.getMessage().lower()
    assert "ValueError: a defect" in caplog.text
