"""The wheel and the Debian package: what is in them, and that Warren starts where they land."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.support.package import FOLDERS, ROOT, SPARK_MODULE, build_wheel, run
from tests.support.server import WarrenServer


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
    return build_wheel(tmp_path_factory.mktemp("distributions"))


def test_wheel_holds_every_source_file_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    described = {name for name in names if name.split("/")[0].endswith(".dist-info")}
    assert names - described == sources() | {SPARK_MODULE}
    assert "warrenmq/py.typed" in names
    assert any(name.startswith("warrenmq/migrations/") for name in names)
    assert any(name.startswith("warrenmq/static/") for name in names)
    assert "warrenmq/docs/README.md" in names
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
    # What is imported is compiled then, which is less than all.
    run(*pip, "install", "--quiet", "--no-deps", "--no-compile", wheel, cwd=directory)
    packages = Path(run(python, "-c", PRINT_PACKAGES, cwd=directory).strip())
    # Path files of the other environment are not read from here: its `warrenmq` stays unseen.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return directory


PRINT_PACKAGES = "import sysconfig; print(sysconfig.get_path('purelib'))"


def test_installed_wheel_starts(environment: Path) -> None:
    with WarrenServer(command=[str(environment / "bin" / "warren")]) as server:
        assert "ready" in server.output()
        assert server.stop() == 0


def test_a_checkout_in_the_working_directory_is_not_imported(
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


def test_what_the_installed_package_exports_is_typed(environment: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("from warrenmq import Warren\n\nreveal_type(Warren.run().http_url)\n")
    options = ("--strict", "--no-error-summary", "--python-executable")
    shown = run(
        sys.executable, "-m", "mypy", *options, environment / "bin" / "python", program,
        cwd=tmp_path,
    )  # fmt: skip
    assert 'Revealed type is "str"' in shown or 'Revealed type is "builtins.str"' in shown


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the Debian package, and its control files in `DEBIAN`; the packages that Warren
    needs are left out."""
    directory = tmp_path_factory.mktemp("debian")
    (directory / "none.lock").touch()
    build = ROOT / "deploy" / "debian" / "build.py"
    options = ("--requirements", directory / "none.lock")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPKG_DEB_COMPRESSOR_TYPE", "none")  # it takes longer than all else here
        package = run(sys.executable, build, wheel, directory, *options, cwd=directory).strip()
    run("dpkg-deb", "--raw-extract", package, directory / "files", cwd=directory)
    return directory / "files"


def test_debian_package_starts(unpacked: Path, tmp_path: Path) -> None:
    shown = (unpacked / "etc" / "warren" / "warren.toml").read_text()
    config = tmp_path / "warren.toml"
    config.write_text(shown.replace("/var/lib/warren", str(tmp_path / "data")))
    environment = {
        # The interpreter without an environment, as Debian's is: only the package has a `warrenmq`.
        "PATH": f"{sys.base_prefix}/bin:{os.environ['PATH']}",
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "WARREN_CONFIG": str(config),
    }
    command = [str(unpacked / "usr" / "bin" / "warren")]
    with WarrenServer(command=command, env=environment) as server:
        assert server.stop() == 0


def test_debian_package_asks_for_its_python_and_keeps_the_settings(unpacked: Path) -> None:
    control = (unpacked / "DEBIAN" / "control").read_text()
    assert f"\nDepends: python{sys.version_info[0]}.{sys.version_info[1]}, passwd\n" in control
    assert (unpacked / "DEBIAN" / "conffiles").read_text() == "/etc/warren/warren.toml\n"
    for script in ("postinst", "prerm", "postrm"):
        run("sh", "-n", unpacked / "DEBIAN" / script, cwd=unpacked)


def test_systemd_unit_is_hardened(unpacked: Path) -> None:
    unit = unpacked / "lib" / "systemd" / "system" / "warren.service"
    # The exposure is 0 to 10 (times 10 here); a unit without restrictions has 9.6.
    run("systemd-analyze", "security", "--offline=true", "--threshold=20", unit, cwd=unpacked)


def test_bill_of_materials_has_every_locked_package() -> None:
    lock = ROOT / "deploy" / "requirements.lock"
    document = json.loads(run(sys.executable, ROOT / "deploy" / "sbom.py", lock, cwd=ROOT))
    listed = {(one["name"], one["version"]) for one in document["components"]}
    lines = [line.split(" ")[0] for line in lock.read_text().splitlines() if "==" in line]
    assert listed == {tuple(line.split("==")) for line in lines} != set()
    hashes = [one["content"] for part in document["components"] for one in part["hashes"]]
    assert len(hashes) == lock.read_text().count("--hash=sha256:")


def test_the_installed_package_is_a_pytest_plugin(environment: Path, tmp_path: Path) -> None:
    """Without more than its installation; a fixture would start a server (docs/testing.md)."""
    python = environment / "bin" / "python"
    shown = run(python, "-m", "pytest", "--fixtures", "-p", "no:cacheprovider", cwd=tmp_path)
    assert "warren_url -- " in shown
