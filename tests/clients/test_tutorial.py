"""The tutorial: each step in each language prints what its page shows."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.support.ports import accepts, free_port
from tests.support.process import wait_until
from tests.support.server import WarrenServer

from . import tutorial
from .blocks import command, write_files
from .programs import BUILD_LIMIT_S, PROGRAMS
from .tutorial import PAGES

# Their programs are compiled, which takes longer than all else here; `scenarios.py` is run by both.
_COMPILED = ("Go", "Java")
LANGUAGES = list(PAGES["1-work-queue"])
LIMIT_S = 60.0
VHOST = "/api/vhosts/tutorial"

pytestmark = pytest.mark.timeout(BUILD_LIMIT_S + 3 * LIMIT_S)


class Terminals:
    """Runs programs of the tutorial; those that wait for messages are ended with the test."""

    def __init__(self, folder: Path, callback_port: int, http: httpx.Client) -> None:
        self._folder, self._callback_port, self._http = folder, callback_port, http
        self._started: list[tuple[subprocess.Popen[bytes], Path]] = []

    def start(self, program: str) -> Path:
        """Leaves the program running, and returns the file that it prints to once it is ready."""
        consumers = self._consumers()
        log = self._folder / f"{program}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command(program), cwd=self._folder, stdout=output, start_new_session=True
            )
        self._started.append((process, log))
        ready = (
            self._listening if program == "callback.py" else lambda: self._consumers() > consumers
        )
        wait_until(lambda: process.poll() is not None or ready(), LIMIT_S, f"{program} is ready")
        assert process.poll() is None, f"{program} has ended"
        return log

    def _listening(self) -> bool:
        return accepts(self._callback_port)

    def _consumers(self) -> int:
        return len(self._http.get("/api/consumers/tutorial").raise_for_status().json())

    def run(self, program: str) -> str:
        """Runs the program to its end, and returns what it has printed."""
        done = subprocess.run(
            command(program), cwd=self._folder, capture_output=True, text=True, timeout=LIMIT_S
        )
        assert (done.returncode, done.stderr) == (0, ""), program
        return done.stdout

    def close(self) -> None:
        for process, _ in self._started:
            with suppress(ProcessLookupError):  # It has ended by itself.
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(LIMIT_S)


@pytest.fixture(scope="module")
def callback_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def folder(
    warren: WarrenServer, callback_port: int, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """All programs of all pages, for a virtual host of their own."""
    folder = tmp_path_factory.mktemp("tutorial")
    replaced = {
        "localhost:5672": f"{warren.host}:{warren.amqp_port}/tutorial",
        '"localhost", 5672': f'"{warren.host}", {warren.amqp_port}, "tutorial"',
        "localhost:15672": f"{warren.host}:{warren.http_port}/tutorial",
        "9000": str(callback_port),
    }
    write_files(tutorial.FOLDER.glob("*.md"), folder, replaced)
    return folder


@pytest.fixture(scope="module")
def needs_java(folder: Path) -> None:
    _skip_unless_installed("java")
    tutorial.build_java(folder)


@pytest.fixture(scope="module")
def needs_go(folder: Path) -> None:
    _skip_unless_installed("go")
    tutorial.build_go(folder)


@pytest.fixture(scope="module")
def needs_javascript(folder: Path, node_folder: Path) -> None:
    (folder / "node_modules").symlink_to(node_folder / "node_modules")


@pytest.fixture(scope="module")
def needs_curl() -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")


def _skip_unless_installed(name: str) -> None:
    (program,) = [program for program in PROGRAMS if program.name == name]
    if reason := program.missing():
        pytest.skip(reason)


def _prepare(languages: list[str], request: pytest.FixtureRequest) -> None:
    """Skips the test if what a language needs is missing."""
    for name in ("java", "go", "javascript", "curl"):
        if name in map(str.lower, languages):
            request.getfixturevalue(f"needs_{name}")


@pytest.fixture
def terminals(folder: Path, callback_port: int, warren: WarrenServer) -> Iterator[Terminals]:
    """In a virtual host that is empty."""
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest"), timeout=LIMIT_S) as http:
        http.put(VHOST).raise_for_status()
        terminals = Terminals(folder, callback_port, http)
        try:
            yield terminals
        finally:
            terminals.close()
            http.delete(VHOST).raise_for_status()


def waiting(language: str, page: str) -> list[str]:
    """The programs that have to run before the last one."""
    if language != "curl":
        return PAGES[page][language].programs[:-1]
    return ["callback.py", *(["server.py"] if page == "5-rpc" else [])]


def prints(logs: list[Path], lines: list[str], printed: str = "") -> None:
    """Waits for these lines, in any order: subscriptions of one callback don't wait for another."""

    def whole() -> bool:
        text = "".join(log.read_text() for log in logs) + printed
        return sorted(text.splitlines()) == sorted(lines)

    wait_until(whole, LIMIT_S, f"{lines} from {[log.name for log in logs]}")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    "language",
    [
        pytest.param(name, marks=pytest.mark.thorough) if name in _COMPILED else name
        for name in LANGUAGES
    ],
)
def test_step(
    language: str, page: str, terminals: Terminals, request: pytest.FixtureRequest
) -> None:
    _prepare([language], request)
    section = PAGES[page][language]
    logs = [terminals.start(program) for program in waiting(language, page)]
    if language == "curl":
        for program in section.programs[:-1]:
            terminals.run(program)
    printed = terminals.run(section.programs[-1])
    prints(logs, section.shown.splitlines(), printed)


def test_workers_share(terminals: Terminals, needs_javascript: None, needs_curl: None) -> None:
    logs = [terminals.start("worker.py"), terminals.start("worker.mjs")]
    terminals.run("tasks.sh")
    prints(logs, PAGES["1-work-queue"]["JavaScript"].shown.splitlines())
    assert all(log.read_text() for log in logs)


@pytest.mark.parametrize(
    "languages",
    [
        pytest.param([name for name in LANGUAGES if name not in _COMPILED], id="interpreted"),
        pytest.param(LANGUAGES, id="all", marks=pytest.mark.thorough),
    ],
)
def test_listeners_of_all_languages_get_a_copy_each(
    languages: list[str], terminals: Terminals, request: pytest.FixtureRequest
) -> None:
    _prepare(languages, request)
    page = PAGES["2-publish-subscribe"]
    listeners = [page[name].programs[0] for name in languages if name != "curl"]
    logs = [terminals.start(program) for program in listeners]
    terminals.run("announce.sh")
    for log in logs:
        prints([log], page["Go"].shown.splitlines())


def test_every_page_has_every_language() -> None:
    assert len(PAGES) == 6 and len(LANGUAGES) == 6
    assert all(list(page) == LANGUAGES for page in PAGES.values())
