"""Users, passwords and permissions: one authorizer for AMQP and HTTP.

A permission is three regular expressions per virtual host, matched by a linear-time engine
because users write them; topic permissions add routing keys. Answers are cached, so that the hot
path pays one dictionary hit.
"""

from .errors import AuthError, LastAdministrator, Unknown
from .hashes import exported, hashed, imported
from .passwords import GUEST, VERIFIED_FOR_S
from .permissions import Access, Permissions, TopicAccess, TopicPermissions, TopicRights
from .storage import UserStorage
from .throttle import Throttle, address_behind, network
from .user import ADMINISTRATOR, DEFAULT_EXCHANGE, Kind, User
from .users import Users

__all__ = [
    "ADMINISTRATOR",
    "DEFAULT_EXCHANGE",
    "GUEST",
    "VERIFIED_FOR_S",
    "Access",
    "AuthError",
    "Kind",
    "LastAdministrator",
    "Permissions",
    "Throttle",
    "TopicAccess",
    "TopicPermissions",
    "TopicRights",
    "Unknown",
    "User",
    "UserStorage",
    "Users",
    "address_behind",
    "exported",
    "hashed",
    "imported",
    "network",
]
