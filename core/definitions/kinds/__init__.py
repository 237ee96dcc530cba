"""The kinds of definitions, each with its key and value as bytes.

A key begins with its `Kind`, a value with its version.
"""

from .access import (
    PermissionDefinition,
    TopicPermissionDefinition,
    UserDefinition,
    UserLimitsDefinition,
)
from .parameters import GlobalParameterDefinition, ParameterDefinition
from .topology import BindingDefinition, ExchangeDefinition, QueueDefinition
from .vhosts import (
    OperatorPolicyDefinition,
    PolicyDefinition,
    VhostDefinition,
    VhostLimitsDefinition,
)

__all__ = [
    "BindingDefinition",
    "Definition",
    "ExchangeDefinition",
    "GlobalParameterDefinition",
    "OperatorPolicyDefinition",
    "ParameterDefinition",
    "PermissionDefinition",
    "PolicyDefinition",
    "QueueDefinition",
    "TopicPermissionDefinition",
    "UserDefinition",
    "UserLimitsDefinition",
    "VhostDefinition",
    "VhostLimitsDefinition",
]

Definition = (
    VhostDefinition
    | UserDefinition
    | PermissionDefinition
    | ExchangeDefinition
    | QueueDefinition
    | BindingDefinition
    | PolicyDefinition
    | OperatorPolicyDefinition
    | TopicPermissionDefinition
    | VhostLimitsDefinition
    | UserLimitsDefinition
    | ParameterDefinition
    | GlobalParameterDefinition
)
