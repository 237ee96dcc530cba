"""The image is built from files that exist, and compose hands it what it needs."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from warrenmq.hub.engine.amqp.address import read_address

ROOT = Path(__file__).parents[1]
PORTS = {"5672", "15672"}


def read_instructions() -> list[tuple[str, str]]:
    """Keyword and rest of each instruction, continued lines joined."""
    text = re.sub(r"\\\n", "", (ROOT / "Dockerfile").read_text())
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return [(keyword, rest) for keyword, _, rest in (line.partition(" ") for line in lines)]


@pytest.fixture(scope="module")
def instructions() -> list[tuple[str, str]]:
    return read_instructions()


def stage(instructions: list[tuple[str, str]], name: str) -> list[tuple[str, str]]:
    """The instructions of an image; that of the server is the last one and has no name."""
    found: dict[str, list[tuple[str, str]]] = {}
    for keyword, rest in instructions:
        if keyword == "FROM":
            begun = found.setdefault(rest.partition(" AS ")[2], [])
        begun.append((keyword, rest))
    return found[name]


@pytest.fixture(scope="module")
def services() -> Any:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


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
    assert {"app", "core", "docs", "hub", "migrations", "static", "pyproject.toml"} <= sources
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


def test_locked_versions_satisfy_the_project(instructions: list[tuple[str, str]]) -> None:
    """`make lock` writes it anew."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed, extras = project["project"]["dependencies"], project["project"]["optional-dependencies"]
    for lock, wanted in (
        ("deploy/requirements.lock", needed),
        ("deploy/arrow-requirements.lock", needed + extras["arrow"]),
        ("deploy/cluster-requirements.lock", needed + extras["cluster"]),
        ("deploy/pipeline-requirements.lock", needed + extras["arrow"] + extras["spark"][1:]),
        ("deploy/build-requirements.lock", project["build-system"]["requires"]),
    ):
        versions = locked(lock)
        for requirement in map(Requirement, wanted):
            assert versions[canonicalize_name(requirement.name)] in requirement.specifier
    installs = [rest for rest in rests(instructions, "RUN") if rest.startswith("pip")]
    assert all("--require-hashes" in rest or "--no-deps" in rest for rest in installs)


def test_image_runs_as_its_own_user_and_names_ports_and_volume(
    instructions: list[tuple[str, str]],
) -> None:
    server = stage(instructions, "")
    assert instructions[-len(server) :] == server
    (volume,) = rests(server, "VOLUME")
    command = json.loads(rests(server, "CMD")[0])
    assert rests(server, "USER") == ["warren"]
    assert set(rests(server, "EXPOSE")[0].split()) == PORTS
    assert command[:2] == ["warren", "serve"]
    assert command[command.index("--data") + 1] == volume
    assert "/health/ready" in rests(server, "HEALTHCHECK")[0]


def test_the_documented_run_publishes_ports_and_volume(instructions: list[tuple[str, str]]) -> None:
    text = (ROOT / "docs" / "operations.md").read_text().replace("\\\n", "")
    line = next(one for one in text.splitlines() if one.startswith("$ docker run"))
    words = shlex.split(line)
    values = {
        option: [value for word, value in pairwise(words) if word == option]
        for option in ("--publish", "--volume", "--env")
    }
    assert set(values["--publish"]) == {f"127.0.0.1:{port}:{port}" for port in PORTS}
    assert values["--volume"] == ["warren-data:" + rests(stage(instructions, ""), "VOLUME")[0]]
    # tests/app/test_setup.py starts with this setting alone, and creates the administrator.
    assert values["--env"] == ["WARREN_ALLOW_PLAINTEXT=1"]


def test_compose_builds_that_image_and_needs_a_password(
    services: Any, instructions: list[tuple[str, str]]
) -> None:
    service = services["warren"]
    (lock,) = rests(stage(instructions, ""), "ARG")
    assert service["build"]["args"] == {"REQUIREMENTS": f"${{WARREN_{lock.replace('=', ':-')}}}"}
    assert "profiles" not in service
    assert {port.rsplit(":", 1)[1] for port in service["ports"]} == PORTS
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["environment"]["WARREN_DEFAULT_PASS"].startswith("${WARREN_DEFAULT_PASS:?")
    assert service["volumes"][0].endswith(":" + rests(stage(instructions, ""), "VOLUME")[0])


def test_compose_has_a_spark_cluster_that_shares_image_and_folders(
    services: Any, instructions: list[tuple[str, str]]
) -> None:
    image = stage(instructions, "pipeline")
    assert rests(image, "USER") == ["warren"]
    cluster = {name: services[name] for name in ("spark-master", "spark-worker", "pipeline")}
    for service in cluster.values():
        assert service["build"] == {"context": ".", "target": "pipeline"}
        places = [volume.split(":")[1] for volume in service["volumes"]]
        assert places == rests(image, "VOLUME")[0].split()
        assert service["profiles"]
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    server = services["warren"]
    assert f"pipeline-data:{server['environment']['WARREN_ARCHIVES']}" in server["volumes"]
    assert set(server["volumes"]) & set(cluster["pipeline"]["volumes"])
    assert cluster["spark-worker"]["deploy"]["replicas"] == 2
    assert cluster["spark-worker"]["command"][-1] == "spark://spark-master:7077"


def test_compose_has_profiles_of_other_services_with_files_that_exist(services: Any) -> None:
    profiles = {
        name: service["profiles"]
        for name, service in services.items()
        if service.get("build") is None
    }
    assert profiles == {
        "postgres": ["postgres", "cluster"], "prometheus": ["monitoring"],
        "grafana": ["monitoring"], "hub": ["cluster"],
        **{f"rabbit{number}": ["cluster"] for number in (1, 2, 3)},
    }  # fmt: skip
    volumes = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["volumes"]
    for name in profiles:
        for source in (volume.split(":")[0] for volume in services[name]["volumes"]):
            assert (ROOT / source).is_file() if source.startswith("./") else source in volumes
        assert all(port.startswith("127.0.0.1:") for port in services[name].get("ports", ()))


def test_compose_has_two_hubs_on_a_cluster(services: Any) -> None:
    """With addresses that the hub can read, and each with what the services before it need."""
    first, second, proxy = services["hub1"], services["hub2"], services["hub"]
    assert first["environment"] == second["environment"]
    assert first["volumes"] == second["volumes"]
    assert first["command"] != second["command"]
    assert (ROOT / "deploy" / first["build"]["args"]["REQUIREMENTS"]).is_file()
    filled = {
        name: re.sub(r"\$\{\w+(?::-(.*?))?\}", lambda found: found[1] or "secret", value)
        for name, value in first["environment"].items()
    }
    address = read_address(filled["WARREN_ENGINE"])
    nodes = [host for host, _ in address.nodes]
    assert nodes == [name for name in services if name.startswith("rabbit")]
    assert urlsplit(filled["WARREN_DATABASE"]).hostname in services
    text = (ROOT / "deploy" / "cluster" / "haproxy.cfg").read_text()
    servers = set(re.findall(r"^    server (\w+) \1:", text, re.MULTILINE))
    assert servers == {"hub1", "hub2", *nodes}
    for service in (first, second, proxy):
        assert service["depends_on"].keys() <= services.keys()
        assert service["profiles"] == ["cluster"]
    conf = (ROOT / "deploy" / "cluster" / "rabbitmq.conf").read_text()
    assert (
        re.findall(r"rabbit@(\w+)", conf) == nodes == [services[one]["hostname"] for one in nodes]
    )


def test_haproxy_takes_its_configuration() -> None:
    command = [shutil.which("haproxy") or "/usr/sbin/haproxy", "-c", "-f"]
    command.append(str(ROOT / "deploy" / "cluster" / "haproxy.cfg"))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_its_configuration(tmp_path: Path) -> None:
    text = (ROOT / "deploy" / "monitoring" / "prometheus.yml").read_text()
    (tmp_path / "password").write_text("eleven purple rabbits")
    shutil.copy(ROOT / "docs" / "grafana" / "alerts.yml", tmp_path)
    changed = text.replace("/etc/prometheus", str(tmp_path))
    changed = changed.replace("/run/secrets/warren-password", str(tmp_path / "password"))
    assert changed.count(str(tmp_path)) == 2
    (tmp_path / "prometheus.yml").write_text(changed)
    command = ["promtool", "check", "config", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_spark_cluster_makes_its_secret_once(tmp_path: Path) -> None:
    settings = tmp_path / "spark-defaults.conf"
    command = [str(ROOT / "deploy" / "spark-secret"), "cat", str(settings)]
    runs = [
        subprocess.run(
            command,
            env={**os.environ, "SPARK_CONF_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1] == settings.read_text()
    assert re.search(r"^spark.authenticate.secret [0-9a-f]{64}$", runs[0], re.MULTILINE)
    assert "\nspark.master.rest.enabled false\n" in runs[0]
    assert settings.stat().st_mode & 0o077 == 0
