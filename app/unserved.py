"""Lists stored data that can't be served, for health checks."""

from __future__ import annotations

from ..core.broker import Broker

WHERE = "see `GET /api/warren/quarantine` and `warren repair list`"


def unserved_data(broker: Broker) -> list[str]:
    """Returns a line for each kind of problem; empty if all stored data can be served."""
    store = broker.store
    files = [f"{name} ({reason})" for name, reason in store.unreadable.items()]
    found = {
        f"files that can't be read in places: {', '.join(files)}": files,
        f"messages in quarantine, since their queue's definition was lost: "
        f"{sum(store.quarantine.values())}": store.quarantine,
        f"definitions that are kept and not in force: {len(broker.set_aside)}": broker.set_aside,
        "this start found damaged bytes in the log": store.is_damaged and not files,
    }
    return [line for line, is_so in found.items() if is_so]
