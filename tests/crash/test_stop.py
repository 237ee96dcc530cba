"""F18: SIGTERM under load, and a process that stands still for a while."""

from __future__ import annotations

import os
import signal
import threading
from functools import partial

import pytest

from tests.bench.client import Address
from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .load import Load
from .site import Site
from .support import amqp

MESSAGES = 20_000
STEP = 2_000
STANDSTILL_S = 2.0
WORK_S = 100.0
pytestmark = [pytest.mark.promise, pytest.mark.timeout(600)]


@pytest.fixture
def load(server: WarrenServer) -> Load:
    site = Site(amqp(server), Address(server.host, server.http_port))
    site.begin_life()
    load = Load(site)
    site.pace.allowed = lambda: MESSAGES * site.life
    load.start()
    return load


def confirmed(load: Load, goal: int) -> bool:
    return load.confirmed > goal


def judge(load: Load) -> None:
    load.finish()
    load.count_rest()
    load.site.end_life()
    verdict = load.site.checker.verdict()
    assert verdict.valid, "\n".join(verdict.examples)


def test_a_stop_under_load_loses_nothing(server: WarrenServer, load: Load) -> None:
    before = 0
    for _ in range(3):
        wait_until(partial(confirmed, load, before + STEP), WORK_S, "some confirms")
        load.site.end_life()
        assert server.stop() == 0, server.output()
        assert "Traceback" not in server.output()
        before = load.confirmed
        server.start()
        load.site.begin_life()
    judge(load)


def test_a_standstill_loses_nothing(server: WarrenServer, load: Load) -> None:
    wait_until(partial(confirmed, load, STEP), WORK_S, "some confirms")
    os.kill(server.pid, signal.SIGSTOP)
    threading.Event().wait(STANDSTILL_S)
    os.kill(server.pid, signal.SIGCONT)
    judge(load)
    assert server.stop() == 0
