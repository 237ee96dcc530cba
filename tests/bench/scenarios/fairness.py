"""What another client feels while one-to-one is saturated."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..brokers import Broker
from ..client import Client
from ..disk import DiskSync
from ..figures import Figures
from ..flow import Flow, Running, Standing, figures
from ..frames import PERSISTENT, Message
from ..http_client import HttpConnection
from ..measure import percentile
from ..scenario import Scenario, Settings
from ..spent import Spent
from ..window import ACK_SIZE
from ..worker import Crew
from .http import ACCEPTED, publish_request
from .throughput import SMALL, one_to_one

PAUSE_S = 0.005
WARM_UP_S = 0.3
OTHER = "bench-other"

Probe = Callable[[], object]


def _probe_until(deadline: float, probe: Probe) -> list[float]:
    times_s: list[float] = []
    while time.monotonic() < deadline:
        start = time.monotonic()
        probe()
        times_s.append(time.monotonic() - start)
        time.sleep(PAUSE_S)
    return times_s


def _beside_load(broker: Broker, settings: Settings, probe: Probe) -> Figures:
    """The rates are those of the load, the times those of the probe."""
    flow = one_to_one(settings)
    with Standing(broker, flow), Crew() as crew:
        running = Running(crew, broker, flow)
        spent, start = Spent(broker), time.monotonic()
        running.go()
        time.sleep(WARM_UP_S)
        times_s = _probe_until(start + settings.seconds - WARM_UP_S, probe)
        line = figures(running.finish(), spent)
    line.p50_ms, line.p99_ms = (percentile(times_s, one) * 1e3 for one in (50, 99))
    line.note = f"{len(times_s)} probes, slowest {max(times_s) * 1e3:.1f} ms"
    return line


def declare_beside(broker: Broker, settings: Settings) -> Figures:
    """Each probe is a `queue.declare` round trip on a second connection."""
    with Standing(broker, Flow((OTHER,))):
        client = Client(broker.address)
        line = _beside_load(broker, settings, lambda: client.declare_queue(OTHER))
        client.close()
        return line


def confirm_beside(broker: Broker, settings: Settings) -> Figures:
    """Each probe is one persistent publish into a durable queue, until its confirm."""
    with Standing(broker, Flow((OTHER,), durable=True)):
        client = Client(broker.address)
        client.select_confirms()
        publish = Message("", OTHER, SMALL, PERSISTENT).published()
        disk = DiskSync(broker, len(publish))

        def probe() -> None:
            client.socket.sendall(publish)
            received = 0
            while received < ACK_SIZE:
                received += len(client.socket.recv(ACK_SIZE))

        line = _beside_load(broker, settings, probe)
        client.close()
        line.remark(f"this disk's own sync {disk.median_s() * 1e3:.2f} ms")
        return line


def http_beside(broker: Broker, settings: Settings) -> Figures:
    """Each probe is one HTTP publish on a kept connection."""
    assert broker.http is not None
    with Standing(broker, Flow((OTHER,), durable=True)):
        connection = HttpConnection(broker.http)
        data = publish_request(broker.http, OTHER)
        line = _beside_load(broker, settings, lambda: connection.ask(data, ACCEPTED))
        connection.close()
        return line


SCENARIOS = (
    Scenario("declare-beside-load", declare_beside, 20, floor_is_p99_ms=True),
    Scenario("confirm-beside-load", confirm_beside),
    Scenario("http-beside-load", http_beside, 50, floor_is_p99_ms=True, http=True),
)
