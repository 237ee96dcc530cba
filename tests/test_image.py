"""The last stage of the Dockerfile, its steps run in namespaces: no daemon is needed for that."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.package import ROOT, build_wheel
from tests.test_container import read_instructions, rests, stage

SCRIPT = ROOT / "tests" / "support" / "scratch_root.sh"
LOCK = ROOT / "deploy" / "requirements.lock"
OWN = ("--mount", "--net", "--pid", "--fork", "--kill-child")
TIMEOUT_S = 280


def unshared(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a command with mounts, processes and a network of its own, which end with it."""
    users = () if os.geteuid() == 0 else ("--map-root-user", "--map-auto")
    words = ["unshare", *users, *OWN, *map(str, command)]
    return subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S
    )


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheels of all that is locked: where one has none, its users would need a compiler."""
    directory = tmp_path_factory.mktemp("packages")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    locked = ["--only-binary=:all:", "--require-hashes", "--requirement", str(LOCK)]
    done = subprocess.run(
        [*pip, *locked, "--dest", str(directory)], capture_output=True, text=True, timeout=TIMEOUT_S
    )
    if done.returncode and "connection" in done.stderr:
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr
    return directory


@pytest.mark.thorough
@pytest.mark.timeout(TIMEOUT_S)
def test_the_image_installs_starts_and_lets_its_first_user_log_in(
    packages: Path, tmp_path: Path
) -> None:
    """As `docker run` in docs/operations.md: with its settings, over HTTP and AMQP."""
    if shutil.which("unshare") is None or unshared("true").returncode:
        pytest.skip("namespaces can't be made here")
    image = stage(read_instructions(), "")
    root = tmp_path / "root"
    (root / "wheels").mkdir(parents=True)
    shutil.copy(build_wheel(tmp_path), root / "wheels")
    shutil.copy(LOCK, root / "wheels")
    shutil.copytree(packages, root / "packages")
    (workdir,) = rests(image, "WORKDIR")
    health = json.loads(rests(image, "HEALTHCHECK")[0].partition(" CMD ")[2])
    (start,) = map(json.loads, rests(image, "CMD"))
    (root / "run.sh").write_text("\n".join([*rests(image, "ARG"), *rests(image, "RUN")]))
    (root / "health.sh").write_text(shlex.join(health))
    (root / "start.sh").write_text(f"cd {workdir}\nexec {shlex.join(start)}")
    for path in (tmp_path, root):
        path.chmod(0o755)
    done = unshared("sh", SCRIPT, root, sys.base_prefix)
    assert done.returncode == 0, done.stdout + done.stderr
    said, queues, *figures = done.stdout.splitlines()
    assert (said, queues) == ("user 'ada' is an administrator now: --user ada logs in", "no queues")
    assert [line.split()[0] for line in figures] == ["published", "consumed", "bodies"]
