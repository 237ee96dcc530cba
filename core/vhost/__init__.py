"""Virtual hosts: their exchanges, queues and bindings.

`virtual_host` declares and routes, `bindings` binds and replays, `deletion` deletes in slices.
"""

from .names import check_name
from .virtual_host import DEFAULT_EXCHANGE, REPLY_PREFIX, REPLY_TO, VirtualHost

__all__ = ["DEFAULT_EXCHANGE", "REPLY_PREFIX", "REPLY_TO", "VirtualHost", "check_name"]
