"""README's minute does what it says, and README stays short."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import httpx
import pytest

from tests.support.process import wait_until
from tests.support.server import WarrenServer
from tests.support.terminals import TIMEOUT_S, Ports, Terminals, shows

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
FIVE_MINUTES_WORDS = 1_200
"""What is read in five minutes."""
INSTALLING = ".venv/bin/pip install --quiet pika\n"


def test_the_minute(tmp_path: Path, warren: WarrenServer) -> None:
    run_minute(tmp_path, warren, warren.http_url)


def run_minute(directory: Path, server: Ports, management_url: str) -> None:
    """As somebody does who has started the server."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    # The packages of the tests have pika, and their interpreter is that of `.venv`.
    text = README.replace(INSTALLING, "").replace(".venv/bin/python", sys.executable)
    terminals = Terminals(text, directory, server)
    try:
        reader = terminals.start(terminals.example("/stream/x/news"))
        bindings = f"{management_url}/api/exchanges/%2F/news/bindings/source"

        def is_read() -> bool:
            answer = httpx.get(bindings, auth=("guest", "guest"), verify=False)
            return answer.status_code == 200 and bool(answer.json())

        wait_until(is_read, TIMEOUT_S, "the reader")
        terminals.run(terminals.example("It rains"))
        shows(reader, "It rains")
        shows(reader, "The sun shines")
    finally:
        terminals.close()


def test_it_is_read_in_five_minutes() -> None:
    assert INSTALLING in README
    assert len(README.split()) < FIVE_MINUTES_WORDS
