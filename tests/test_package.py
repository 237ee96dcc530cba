"""The wheel carries everything that Warren needs, nothing else, and starts where it lands."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.support.server import WarrenServer

ROOT = Path(__file__).parents[1]
FOLDERS = ("app", "core", "hub", "migrations", "static")
FILES = ("pyproject.toml", "README.md", "LICENSE")
COMMAND_TIMEOUT_S = 100


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def sources() -> set[str]:
    """What the folders hold, as it has to be called in the wheel."""
    paths = (
        path.relative_to(ROOT).as_posix()
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    return {"warrenmq/" + path.removeprefix("app/package/") for path in paths}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that leftovers of earlier builds can't get in."""
    tree = tmp_path_factory.mktemp("tree")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in FILES:
        shutil.copy(ROOT / file, tree)
    options = ["--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
    run(sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", tree / "dist", ".", cwd=tree)
    return next((tree / "dist").glob("warrenmq-*.whl"))


def test_wheel_holds_every_source_file_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    described = {name for name in names if name.split("/")[0].endswith(".dist-info")}
    assert names - described == sources()
    assert "warrenmq/core/py.typed" in names
    assert any(name.startswith("warrenmq/migrations/") for name in names)
    assert any(name.startswith("warrenmq/static/") for name in names)
    assert any(name.endswith("/licenses/LICENSE") for name in described)


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; it sees the dependencies of this one."""
    directory = tmp_path_factory.mktemp("environment")
    venv.create(directory, with_pip=False, symlinks=True)
    python = directory / "bin" / "python"
    pip: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--python",
        python,
    ]
    run(*pip, "install", "--quiet", "--no-deps", wheel, cwd=directory)
    packages = Path(run(python, "-c", PRINT_PACKAGES, cwd=directory).strip())
    # Path files of the other environment are not read from here: its `warrenmq` stays unseen.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return directory


PRINT_PACKAGES = "import sysconfig; print(sysconfig.get_path('purelib'))"


def test_installed_wheel_starts(environment: Path) -> None:
    with WarrenServer(command=[str(environment / "bin" / "warren")]) as server:
        assert "ready" in server.output()
        assert server.stop() == 0


def test_a_checkout_below_the_working_directory_does_not_hide_what_is_installed(
    environment: Path, tmp_path: Path
) -> None:
    """A folder of the same name, as in the parent of a checkout, is no package."""
    for name in ("warren", "warrenmq"):
        (tmp_path / name).symlink_to(ROOT)
    python = environment / "bin" / "python"
    shown = run(
        python, "-c", "import warrenmq as w; print(w.__version__, w.__file__)", cwd=tmp_path
    )
    number, file = shown.split()
    assert Path(file).is_relative_to(environment)
    assert run(python, "-m", "warrenmq", "--version", cwd=tmp_path) == f"warren {number}\n"
