"""The objects that the hub has made for itself, in lists of queues, exchanges and bindings: they
are left out on request, and the queue of a subscription names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ....core.auth.reserved import is_reserved
from ....hub.subscriptions.subscription import OWN_QUEUE_PREFIX
from .call import Call
from .required_tags import ADMINISTRATOR

WITHOUT_HUB: Final = "without_hub"
"""The query parameter that leaves it out."""


def shown_in(call: Call) -> Callable[[str], bool]:
    """Returns a function that says whether the list shows the exchange or queue of a name."""
    if call.request.query_params.get(WITHOUT_HUB) == "true":
        return lambda name: not is_reserved(name)
    return lambda name: True


def subscription_of(call: Call, queue: str) -> dict[str, Any]:
    """Returns `subscription` if the queue keeps the messages of one that the user may see."""
    if not queue.startswith(OWN_QUEUE_PREFIX):
        return {}
    found = call.context.hub.subscription_store.by_id(queue.removeprefix(OWN_QUEUE_PREFIX))
    if found is None:
        return {}
    one = found.subscription
    if not ADMINISTRATOR.has(call.user) and one.owner != call.user.name:
        return {}
    return {"subscription": {"id": one.id, "callback": one.callback}}
