"""Reads the user name from a client's certificate, for the mechanism EXTERNAL.

Certificates are as `ssl.SSLObject.getpeercert` decodes them, which it does for verified ones only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

Certificate = Mapping[str, Any]
CertificateName = Callable[[Certificate], str | None]

_SHORT: Final = {
    "businessCategory": "BUSINESSCATEGORY", "commonName": "CN", "countryName": "C",
    "dnQualifier": "DNQUALIFIER", "domainComponent": "DC", "emailAddress": "EMAILADDRESS",
    "generationQualifier": "GENERATIONQUALIFIER", "givenName": "GIVENNAME",
    "initials": "INITIALS", "localityName": "L", "name": "NAME", "organizationName": "O",
    "organizationalUnitName": "OU", "pseudonym": "PSEUDONYM", "serialNumber": "SERIALNUMBER",
    "stateOrProvinceName": "ST", "streetAddress": "STREET", "surname": "SN", "title": "TITLE",
    "userId": "UID",
}  # fmt: skip
"""As RFC 4514 and RabbitMQ write them."""
_SPECIAL: Final = frozenset(',+"\\<>;')


def common_name(certificate: Certificate) -> str | None:
    """Returns the CN; None if it is missing, empty or ambiguous."""
    names = [
        value
        for part in certificate.get("subject", ())
        for kind, value in part
        if kind == "commonName"
    ]
    return (str(names[0]) or None) if len(names) == 1 else None


def distinguished_name(certificate: Certificate) -> str | None:
    """Returns the whole subject in RFC 4514 order, as `CN=anders,O=Example,C=SE`."""
    subject = certificate.get("subject", ())
    parts = ["+".join(_attribute(kind, value) for kind, value in part) for part in subject]
    return ",".join(reversed(parts)) or None


def _attribute(kind: str, value: str) -> str:
    return f"{_SHORT.get(kind, kind)}={_escaped(str(value))}"


def _escaped(value: str) -> str:
    """Escapes a value, so that it can't look like another part (RFC 4514 2.4)."""
    text = "".join(f"\\{one}" if one in _SPECIAL else one for one in value).replace("\0", "\\00")
    if text.startswith(("#", " ")):
        text = "\\" + text
    if value.endswith(" ") and len(value) > 1:
        text = text[:-1] + "\\ "
    return text
