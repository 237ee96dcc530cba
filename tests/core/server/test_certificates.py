"""Certificates by host name, unusable files, and reloading."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tests.support.certificates import Authority, common_names
from warrenmq.core.errors import ConfigError
from warrenmq.core.server.certificates import CertificateFiles, Certificates, Verify


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def default(authority: Authority) -> CertificateFiles:
    return CertificateFiles(*authority.issue("localhost"))


def files(authority: Authority, host: str) -> CertificateFiles:
    return CertificateFiles(*authority.issue(host))


class Handshake:
    """Both sides of TLS, without a socket."""

    def __init__(
        self,
        server: ssl.SSLContext,
        client: ssl.SSLContext,
        host: str | None = "localhost",
        session: ssl.SSLSession | None = None,
    ) -> None:
        self._pipes = ssl.MemoryBIO(), ssl.MemoryBIO()
        there, back = self._pipes
        client.check_hostname = host is not None
        self.client = client.wrap_bio(back, there, server_hostname=host, session=session)
        self.server = server.wrap_bio(there, back, server_side=True)
        for _ in range(4):
            for side in (self.client, self.server):
                try:
                    side.do_handshake()
                except ssl.SSLWantReadError:
                    pass

    @property
    def hosts(self) -> list[str]:
        """For whom the certificate is that the client got."""
        certificate = self.client.getpeercert()
        assert certificate is not None
        return common_names(dict(certificate))


def test_certificates_by_host_name(authority: Authority, default: CertificateFiles) -> None:
    certificates = Certificates(
        default,
        {"one.example.org": files(authority, "one.example.org"),
         "*.Two.example.org": files(authority, "*.two.example.org")},
    )  # fmt: skip
    context = certificates.context()
    for host, served in (
        ("one.example.org", "one.example.org"),
        ("ONE.example.org", "one.example.org"),
        ("a.two.example.org", "*.two.example.org"),
        ("localhost", "localhost"),
    ):
        assert Handshake(context, authority.client_context(), host).hosts == [served]


def test_the_default_certificate(authority: Authority, default: CertificateFiles) -> None:
    context = Certificates(
        default, {"one.example.org": files(authority, "one.example.org")}
    ).context()
    assert Handshake(context, authority.client_context(), None).hosts == ["localhost"]
    with pytest.raises(ssl.SSLCertVerificationError, match="not valid for 'a.b.one.example.org'"):
        Handshake(context, authority.client_context(), "a.b.one.example.org")


def test_older_versions_are_refused(default: CertificateFiles) -> None:
    assert Certificates(default).context().minimum_version == ssl.TLSVersion.TLSv1_2


# -- clients' certificates


@pytest.mark.parametrize("verify", [Verify.OPTIONAL, Verify.REQUIRED])
@pytest.mark.parametrize("host", ["localhost", "one.example.org"])
def test_client_certificates(
    authority: Authority, default: CertificateFiles, verify: Verify, host: str
) -> None:
    certificates = Certificates(
        default, {"one.example.org": files(authority, "one.example.org")}, ca=authority.file
    )
    handshake = Handshake(
        certificates.context(verify), authority.client_context("anders"), host
    )  # fmt: skip
    certificate = handshake.server.getpeercert()
    assert certificate is not None
    assert (("commonName", "anders"),) in certificate["subject"]


# -- files


def test_unusable_files(authority: Authority, tmp_path: Path) -> None:
    cert, key = authority.issue("localhost", file="good")
    _, other_key = authority.issue("localhost", file="other")
    text, empty = tmp_path / "text", tmp_path / "empty"
    text.write_text("no PEM")
    empty.write_bytes(b"")
    missing = str(tmp_path / "missing")
    bad = [
        ((missing, key), rf"^certificate {missing}: No such file"),
        ((cert, missing), rf"^key {missing}: No such file"),
        ((str(tmp_path), key), rf"^certificate {tmp_path}: Is a directory"),
        ((cert, other_key), rf"^certificate {cert} with key {other_key}: key values mismatch"),
        ((str(text), key), rf"^certificate {text} with key {key}: not in PEM form"),
        ((cert, str(empty)), rf"^certificate {cert} with key {empty}: not in PEM form"),
        ((key, cert), r"not in PEM form"),
    ]
    for (one, other), message in bad:
        with pytest.raises(ConfigError, match=message):
            Certificates(CertificateFiles(one, other))
    for ca in (str(empty), str(text)):
        with pytest.raises(ConfigError, match=rf"^client CA {ca}: not in PEM form"):
            Certificates(CertificateFiles(cert, key), ca=ca)


def test_encrypted_keys_are_refused(authority: Authority) -> None:
    from cryptography.hazmat.primitives import serialization

    cert, key = authority.issue("localhost", file="locked")
    plain = serialization.load_pem_private_key(Path(key).read_bytes(), None)
    Path(key).write_bytes(
        plain.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(ConfigError, match=rf"^key {key}: it is encrypted"):
        Certificates(CertificateFiles(cert, key))


# -- reading again


@pytest.fixture
def clients_ca(authority: Authority, tmp_path: Path) -> Path:
    path = tmp_path / "clients.pem"
    path.write_bytes(Path(authority.file).read_bytes())
    return path


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("verify", [Verify.OPTIONAL, Verify.REQUIRED])
def test_sessions_verified_by_an_old_ca_are_refused(
    authority: Authority, default: CertificateFiles, clients_ca: Path, tmp_path: Path,
    version: ssl.TLSVersion, verify: Verify,
) -> None:  # fmt: skip
    (tmp_path / "other").mkdir()
    certificates = Certificates(default, ca=str(clients_ca))
    context, client = certificates.context(verify), authority.client_context("anders")
    client.minimum_version = client.maximum_version = version
    first = Handshake(context, client)  # one that is dropped without a word can't be resumed
    session = first.client.session
    clients_ca.write_text(Path(Authority(tmp_path / "other").file).read_text())
    assert certificates.reload()
    for _ in range(2):
        with pytest.raises(ssl.SSLError):
            Handshake(context, client, session=session)


def test_sessions_resume_with_the_same_ca(
    authority: Authority, default: CertificateFiles, clients_ca: Path
) -> None:
    certificates = Certificates(default, ca=str(clients_ca))
    context, client = certificates.context(Verify.OPTIONAL), authority.client_context("anders")
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    first = Handshake(context, client)  # one that is dropped without a word can't be resumed
    session = first.client.session
    assert certificates.reload()
    resumed = Handshake(context, client, session=session)
    assert resumed.server.session_reused
    assert resumed.server.getpeercert()


def test_a_full_handshake_follows_a_refused_session(
    authority: Authority, default: CertificateFiles, clients_ca: Path
) -> None:
    certificates = Certificates(default, ca=str(clients_ca))
    context, client = certificates.context(Verify.OPTIONAL), authority.client_context("anders")
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    first = Handshake(context, client)  # one that is dropped without a word can't be resumed
    session = first.client.session
    clients_ca.write_text(clients_ca.read_text() + "\n")
    assert certificates.reload()
    with pytest.raises(ssl.SSLError):
        Handshake(context, client, session=session)
    anew = Handshake(context, client, session=session)
    assert not anew.server.session_reused
    assert anew.server.getpeercert()
