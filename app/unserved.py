"""Lists stored data that can't be served, for health checks."""

from __future__ import annotations

from ..core.broker import Broker

WHERE = "see `GET /api/warren/quarantine` and `warren repair list`"


def unserved_data(broker: Broker) -> list[str]:
    """Returns a line for each kind of problem; empty if all stored data can be served."""
    store = broker.store
    files = [f"{name} ({reason})" for name, reason in store.recovered.unreadable.items()]
    found = {
        f"files that are partly unreadable: {', '.join(files)}": files,
        f"messages in quarantine, since their queue's definition was lost: "
        f"{sum(store.recovered.quarantine.values())}": store.recovered.quarantine,
        f"definitions that are stored but not applied: {len(broker.set_aside)}": broker.set_aside,
        "this start found damaged bytes in the log": store.recovered.is_damaged and not files,
    }
    return [line for line, is_so in found.items() if is_so]
