"""The image is built from files that exist, and compose hands it what it needs."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PORTS = {"5672", "15672"}


@pytest.fixture(scope="module")
def instructions() -> list[tuple[str, str]]:
    """Keyword and rest of each instruction, continued lines joined."""
    text = re.sub(r"\\\n", "", (ROOT / "Dockerfile").read_text())
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return [(keyword, rest) for keyword, _, rest in (line.partition(" ") for line in lines)]


@pytest.fixture(scope="module")
def service() -> Any:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["warren"]


def rests(instructions: list[tuple[str, str]], wanted: str) -> list[str]:
    return [rest for keyword, rest in instructions if keyword == wanted]


def test_every_copied_file_exists_and_is_sent_to_the_builder(
    instructions: list[tuple[str, str]],
) -> None:
    copies = [rest for rest in rests(instructions, "COPY") if not rest.startswith("--from=")]
    sources = {source for rest in copies for source in shlex.split(rest)[:-1]}
    sent = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"
    }
    assert sources == sent
    assert {"app", "core", "hub", "migrations", "static", "pyproject.toml"} <= sources
    assert all((ROOT / source).exists() for source in sources)


def locked(name: str) -> dict[str, str]:
    """Versions by name; each has its hashes."""
    text = (ROOT / name).read_text().replace("\\\n", " ")
    found: dict[str, str] = {}
    for line in text.splitlines():
        requirement, *hashes = line.split(" --hash=")
        assert hashes and all(one.strip().startswith("sha256:") for one in hashes), line
        parsed = Requirement(requirement)
        assert str(parsed.specifier).startswith("==")
        found[canonicalize_name(parsed.name)] = str(parsed.specifier).removeprefix("==")
    return found


def test_the_lock_is_what_the_project_asks_for(instructions: list[tuple[str, str]]) -> None:
    """`make lock` writes it anew."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for lock, wanted in (
        ("requirements.lock", project["project"]["dependencies"]),
        ("build-requirements.lock", project["build-system"]["requires"]),
    ):
        versions = locked(lock)
        for requirement in map(Requirement, wanted):
            assert versions[canonicalize_name(requirement.name)] in requirement.specifier
    installs = [rest for rest in rests(instructions, "RUN") if rest.startswith("pip")]
    assert all("--require-hashes" in rest or "--no-deps" in rest for rest in installs)


def test_image_runs_as_its_own_user_and_names_ports_and_volume(
    instructions: list[tuple[str, str]],
) -> None:
    (volume,) = rests(instructions, "VOLUME")
    command = json.loads(rests(instructions, "CMD")[-1])
    assert rests(instructions, "USER") == ["warren"]
    assert set(rests(instructions, "EXPOSE")[0].split()) == PORTS
    assert command[:2] == ["warren", "serve"]
    assert command[command.index("--data") + 1] == volume
    assert "/health/ready" in rests(instructions, "HEALTHCHECK")[0]


def test_compose_builds_that_image_and_needs_a_password(
    service: Any, instructions: list[tuple[str, str]]
) -> None:
    assert service["build"] == "."
    assert {port.rsplit(":", 1)[1] for port in service["ports"]} == PORTS
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["environment"]["WARREN_DEFAULT_PASS"].startswith("${WARREN_DEFAULT_PASS:?")
    assert service["volumes"][0].endswith(":" + rests(instructions, "VOLUME")[0])
