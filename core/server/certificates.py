"""The server's certificates by host name, and reloading them.

Every TLS handshake looks up the certificate for the requested name (SNI, RFC 6066 3), so a
`reload` takes effect for later clients on sockets that listen already.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from ..errors import ConfigError

logger = logging.getLogger(__name__)


class Verify(Enum):
    """Whether clients are asked for a certificate: not, optionally, or always."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRED = "required"


_MODES: Final = {
    Verify.NONE: ssl.CERT_NONE,
    Verify.OPTIONAL: ssl.CERT_OPTIONAL,
    Verify.REQUIRED: ssl.CERT_REQUIRED,
}


class CertificateFiles(NamedTuple):
    """Paths of PEM files: a certificate with its chain, and its key."""

    cert: str
    key: str


class Certificates:
    """The certificates by host name; `default` is for clients without SNI or an unknown name.

    A name in `hosts` may begin with `*.`, which stands for one label.
    """

    def __init__(
        self,
        default: CertificateFiles,
        hosts: Mapping[str, CertificateFiles] | None = None,
        *,
        ca: str = "",
    ) -> None:
        """Raises `ConfigError` naming the unusable file; `ca` verifies client certificates."""
        self._files = {name.lower(): files for name, files in (hosts or {}).items()}
        self._files[""] = default
        self._ca = ca
        self._contexts = {verify: self._read(verify) for verify in Verify}
        self._ca_octets = self._read_ca()
        self._trusted_s = 0
        """When the CA changed, in whole seconds, as TLS sessions have it."""

    def reload(self) -> bool:
        """Reads the files again; if one is unusable, nothing changes and the error is logged."""
        try:
            contexts, octets = {verify: self._read(verify) for verify in Verify}, self._read_ca()
        except ConfigError as error:
            logger.error("certificates not reloaded: %s", error)
            return False
        if octets != self._ca_octets:
            self._trusted_s = int(time.time())
        self._contexts, self._ca_octets = contexts, octets
        logger.warning("certificates reloaded")
        return True

    def context(self, verify: Verify = Verify.NONE) -> ssl.SSLContext:
        """Returns a context for a listening socket. Client certificates need a `ca`."""

        def choose(
            handshake: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext
        ) -> int | None:
            """Called in each handshake, with or without a name."""
            if verify is not Verify.NONE and self._resumes_with_old_ca(handshake):
                return ssl.ALERT_DESCRIPTION_HANDSHAKE_FAILURE
            handshake.context = _chosen(self._contexts[verify], (name or "").lower())
            return None

        context = _context(self._files[""], self._ca, verify)
        context.sni_callback = choose
        return context

    def _resumes_with_old_ca(self, handshake: ssl.SSLObject | ssl.SSLSocket) -> bool:
        """Whether a client resumes a TLS 1.2 session in which its certificate was verified with an
        earlier CA, which would not be repeated. With the alert both sides drop the session, so the
        next handshake is a full one.
        """
        session = handshake.session if handshake.session_reused else None
        return session is not None and session.time <= self._trusted_s

    def _read_ca(self) -> bytes:
        return _octets("client CA", self._ca) if self._ca else b""

    def _read(self, verify: Verify) -> dict[str, ssl.SSLContext]:
        """Returns the contexts by host name; the empty one is the default."""
        return {name: _context(files, self._ca, verify) for name, files in self._files.items()}


def _chosen(contexts: Mapping[str, ssl.SSLContext], wanted: str) -> ssl.SSLContext:
    any_label = "*." + wanted.partition(".")[2]
    return contexts.get(wanted) or contexts.get(any_label) or contexts[""]


def _context(files: CertificateFiles, ca: str, verify: Verify) -> ssl.SSLContext:
    _octets("certificate", files.cert)
    _octets("key", files.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION

    def refuse() -> NoReturn:
        # Without it the library would prompt at the terminal.
        raise ConfigError(f"key {files.key}: it is encrypted; a key has to be without password")

    try:
        context.load_cert_chain(files.cert, files.key, password=refuse)
    except ssl.SSLError as error:
        raise ConfigError(
            f"certificate {files.cert} with key {files.key}: {_reason(error)}"
        ) from error
    if ca:
        _octets("client CA", ca)
        try:
            context.load_verify_locations(ca)
        except ssl.SSLError as error:
            raise ConfigError(f"client CA {ca}: {_reason(error)}") from error
    context.verify_mode = _MODES[verify]
    if verify is not Verify.NONE:
        # A resumed session is not verified again after the CA has changed; for sessions without
        # ticket see `_resumes_with_old_ca`.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context


def _octets(purpose: str, path: str) -> bytes:
    """Reads a file. Raises `ConfigError` naming it, which the errors of `ssl` do not."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{purpose} {path}: {error.strerror}") from error


def _reason(error: ssl.SSLError) -> str:
    """Words the reason of an `ssl` error, such as `KEY_VALUES_MISMATCH`."""
    reason = (error.reason or "").replace("_", " ").lower()
    if reason in ("", "pem lib", "no start line", "no certificate or crl found"):
        return "not in PEM form, or not what it should be"
    return reason
