"""Loads the certificates that the settings name."""

from __future__ import annotations

from ...core.errors import ConfigError
from ...core.server.certificate_name import CertificateName, common_name, distinguished_name
from ...core.server.certificates import CertificateFiles, Certificates, Verify
from .settings import Settings


def certificates(settings: Settings) -> Certificates | None:
    """Returns the certificates, None if none is configured.

    Raises `ConfigError` naming the file that can't be used.
    """
    if not settings.tls_cert:
        return None
    hosts = {
        name: CertificateFiles(files.cert, files.key)
        for name, files in settings.tls_host_files().items()
    }
    default = CertificateFiles(settings.tls_cert, settings.tls_key)
    try:
        return Certificates(default, hosts, ca=settings.tls_ca)
    except ConfigError as error:
        raise ConfigError(f"tls: {error}") from error


def verify(settings: Settings) -> Verify:
    """Returns how AMQPS clients' certificates are verified; not at all without a CA."""
    return Verify(settings.tls_verify_clients) if settings.tls_ca else Verify.NONE


def certificate_name(settings: Settings) -> CertificateName:
    """Returns the function that reads a user name from a client's certificate."""
    common = settings.tls_login_from == "common_name"
    return common_name if common else distinguished_name
