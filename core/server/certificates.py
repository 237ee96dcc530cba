"""The server's certificates: which host name gets which, and how they are read again.

Every TLS handshake asks for the certificate of the name that the client wants (SNI, RFC 6066 3),
so a `reload` reaches all who come after it, on sockets that listen already.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import NamedTuple, NoReturn

from ..errors import ConfigError

logger = logging.getLogger(__name__)


class Verify(Enum):
    """What is asked of clients: to show no certificate, one if they have it, or one in any case."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRED = "required"


_MODES = {
    Verify.NONE: ssl.CERT_NONE,
    Verify.OPTIONAL: ssl.CERT_OPTIONAL,
    Verify.REQUIRED: ssl.CERT_REQUIRED,
}


class CertificateFiles(NamedTuple):
    """Paths of PEM files: a certificate with those that lead to its root, and its key."""

    cert: str
    key: str


class Certificates:
    """`default` is for clients that want no name, or one that is not in `hosts`.

    A name in `hosts` may begin with `*.`, which stands for one label.
    """

    def __init__(
        self,
        default: CertificateFiles,
        hosts: Mapping[str, CertificateFiles] | None = None,
        *,
        ca: str = "",
    ) -> None:
        """Raises `ConfigError` naming the file that can't be used; `ca` is asked of clients'."""
        self._files = {name.lower(): files for name, files in (hosts or {}).items()}
        self._files[""] = default
        self._ca = ca
        self._contexts = {verify: self._read(verify) for verify in Verify}
        self._ca_octets = self._read_ca()
        self._trusted_s = 0
        """When the CA became another one: in whole seconds, as sessions have it."""

    def reload(self) -> bool:
        """Reads the files again; if one can't be used, all stays as it is, and the log says why."""
        try:
            contexts, octets = {verify: self._read(verify) for verify in Verify}, self._read_ca()
        except ConfigError as error:
            logger.error("the certificates stay as they were: %s", error)
            return False
        if octets != self._ca_octets:
            self._trusted_s = int(time.time())
        self._contexts, self._ca_octets = contexts, octets
        logger.warning("the certificates were read again")
        return True

    def context(self, verify: Verify = Verify.NONE) -> ssl.SSLContext:
        """For sockets that listen. Client certificates need a `ca`."""

        def choose(
            handshake: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext
        ) -> int | None:
            """Called in each handshake, with or without a name."""
            if verify is not Verify.NONE and self._resumes_too_much(handshake):
                return ssl.ALERT_DESCRIPTION_HANDSHAKE_FAILURE
            handshake.context = _chosen(self._contexts[verify], (name or "").lower())
            return None

        context = _context(self._files[""], self._ca, verify)
        context.sni_callback = choose
        return context

    def _resumes_too_much(self, handshake: ssl.SSLObject | ssl.SSLSocket) -> bool:
        """Whether a client goes on with a session of TLS 1.2 in which its certificate was verified
        with another CA, which would not be done again. With the alert both sides forget it, so
        the next handshake is a whole one.
        """
        session = handshake.session if handshake.session_reused else None
        return session is not None and session.time <= self._trusted_s

    def _read_ca(self) -> bytes:
        return _octets("client CA", self._ca) if self._ca else b""

    def _read(self, verify: Verify) -> dict[str, ssl.SSLContext]:
        """By host name; the empty one is the default."""
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
        # Without it the library would ask whoever sits at the terminal.
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
        # A resumed session would not be looked at again when the CA is not the same any more; see
        # `_resumes_too_much` for those without ticket.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context


def _octets(purpose: str, path: str) -> bytes:
    """The library says neither which file it could not read nor, at times, that it was one."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{purpose} {path}: {error.strerror}") from error


def _reason(error: ssl.SSLError) -> str:
    """`KEY_VALUES_MISMATCH` in words; the library's name for "no PEM in it" helps nobody."""
    reason = (error.reason or "").replace("_", " ").lower()
    if reason in ("", "pem lib", "no start line", "no certificate or crl found"):
        return "not in PEM form, or not what it should be"
    return reason
