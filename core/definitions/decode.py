"""Decodes definitions.

An unknown kind or version was written by a newer Warren: ignoring it could grant rights or lose
messages, so it is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..errors import ConfigError
from . import kinds
from .fields import VERSION, FieldReader
from .keys import DefinitionKind
from .kinds.vhosts import WITH_PROPERTIES

_DECODERS: Final[dict[int, Callable[[FieldReader, FieldReader], kinds.Definition]]] = {
    DefinitionKind.VHOST: kinds.VhostDefinition.decode,
    DefinitionKind.USER: kinds.UserDefinition.decode,
    DefinitionKind.PERMISSION: kinds.PermissionDefinition.decode,
    DefinitionKind.EXCHANGE: kinds.ExchangeDefinition.decode,
    DefinitionKind.QUEUE: kinds.QueueDefinition.decode,
    DefinitionKind.BINDING: kinds.BindingDefinition.decode,
    DefinitionKind.POLICY: kinds.PolicyDefinition.decode,
    DefinitionKind.OPERATOR_POLICY: kinds.OperatorPolicyDefinition.decode,
    DefinitionKind.TOPIC_PERMISSION: kinds.TopicPermissionDefinition.decode,
    DefinitionKind.VHOST_LIMITS: kinds.VhostLimitsDefinition.decode,
    DefinitionKind.USER_LIMITS: kinds.UserLimitsDefinition.decode,
    DefinitionKind.PARAMETER: kinds.ParameterDefinition.decode,
    DefinitionKind.GLOBAL_PARAMETER: kinds.GlobalParameterDefinition.decode,
}
_NEWEST: Final[dict[int, bytes]] = {DefinitionKind.VHOST: WITH_PROPERTIES}
"""The newest version of each kind, where it is not `VERSION`."""


class BadDefinition(ConfigError):
    """The definition under `key` can't be used; others can."""

    def __init__(self, key: bytes, explanation: str) -> None:
        super().__init__(explanation)
        self.key = key


class NewerDefinition(BadDefinition):
    """A definition written by a newer Warren; ignoring it could grant rights."""


def decode(key: bytes, value: bytes) -> kinds.Definition:
    """Decodes a definition. Raises `BadDefinition` naming it if it is damaged, `NewerDefinition` if
    a newer Warren wrote it."""
    decoder = _DECODERS.get(key[0]) if key else None
    if decoder is None:
        raise NewerDefinition(
            key,
            f"definition {key_text(key)} is of a kind that this Warren does not know; "
            f"start the newer one that wrote it",
        )
    newest = _NEWEST.get(key[0], VERSION)
    if value[:1] > newest:
        raise NewerDefinition(
            key,
            f"definition {key_text(key)} has version {value[0]}, this Warren knows up to "
            f"{newest[0]}; start the newer one that wrote it",
        )
    try:
        return _decoded(decoder, key, value)
    except ValueError as error:
        raise BadDefinition(key, f"definition {key_text(key)} is damaged: {error}") from error


def _decoded(
    decoder: Callable[[FieldReader, FieldReader], kinds.Definition], key: bytes, value: bytes
) -> kinds.Definition:
    if value[:1] < VERSION:
        raise ValueError("it has no version")
    key_fields, value_fields = FieldReader(key, 1), FieldReader(value, 1)
    found = decoder(key_fields, value_fields)
    key_fields.end()
    value_fields.end()
    return found


def key_text(key: bytes) -> str:
    """Returns a key as text for error messages: its kind and up to 100 of its bytes."""
    kind = (
        DefinitionKind(key[0]).name.lower() if key and key[0] in _DECODERS else f"0x{key[:1].hex()}"
    )
    readable = "".join(chr(octet) if 32 <= octet < 127 else "." for octet in key[1:101])
    return f"{kind} '{readable}'"
