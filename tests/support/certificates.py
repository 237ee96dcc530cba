"""Certificates made for a test, and the files that a server reads."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

import trustme
from cryptography import x509


@dataclass(frozen=True)
class Authority:
    """A certificate authority that writes its files into one directory."""

    directory: Path
    ca: trustme.CA = field(default_factory=trustme.CA)

    @property
    def file(self) -> str:
        """The authority's own certificate."""
        path = self.directory / "ca.pem"
        self.ca.cert_pem.write_to_path(path)
        return str(path)

    def issue(self, *hosts: str, name: str | None = None, file: str = "") -> tuple[str, str]:
        """Paths of a certificate and its key; `name` is the common name."""
        made = self.ca.issue_cert(*hosts, common_name=name)
        stem = self.directory / (file or name or hosts[0].replace("*", "any"))
        cert, key = f"{stem}.pem", f"{stem}.key"
        made.private_key_pem.write_to_path(key)
        Path(cert).write_bytes(b"".join(pem.bytes() for pem in made.cert_chain_pems))
        return cert, key

    def client_context(self, user: str | None = None) -> ssl.SSLContext:
        """Trusts this authority; with a certificate for the user if one is given."""
        context = ssl.create_default_context()
        self.ca.configure_trust(context)
        if user is not None:
            context.load_cert_chain(*self.issue(f"{user}@example.org", name=user))
        return context


def subject(file: str) -> str:
    """The whole subject of a certificate, as RFC 4514 has it."""
    return x509.load_pem_x509_certificate(Path(file).read_bytes()).subject.rfc4514_string()


def common_names(certificate: dict[str, object]) -> list[str]:
    """The host names that a certificate, decoded by `getpeercert`, is for."""
    names = certificate["subjectAltName"]
    assert isinstance(names, tuple)
    return [value for _, value in names]
