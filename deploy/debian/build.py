"""Builds a Debian package of a wheel: `build.py WHEEL DIRECTORY` (`make package`).

The packages that Warren needs are installed beside it in /usr/lib/warren, in the versions and with
the hashes of a lock file, so that nothing is fetched where the package is installed. Some of them
are compiled for one version of Python: the package depends on that of the interpreter that runs
this.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = Path(__file__).parent
PYTHON = "python{}.{}".format(*sys.version_info)
SCRIPTS = ("postinst", "prerm", "postrm")
CONTROL = """\
Package: warren
Version: {version}
Architecture: {architecture}
Maintainer: Warren maintainers
Section: net
Priority: optional
Depends: {python}, passwd
Description: HTTP-first pubsub hub over an AMQP 0-9-1 broker
 Webhooks, WebSub, feeds and tunnels for web pages over HTTP, and a broker that
 AMQP clients use as they use RabbitMQ.
"""
LAUNCHER = f"""\
#!/bin/sh
# Modules are found beside this file, and none in the current directory.
packages=$(dirname "$(readlink -f "$0")")/../lib/warren
PYTHONPATH="$packages${{PYTHONPATH:+:$PYTHONPATH}}" PYTHONSAFEPATH=1 exec {PYTHON} -m warrenmq "$@"
"""


def main() -> None:
    given = _arguments()
    version = given.wheel.name.split("-")[1]
    given.directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        tree = Path(place)
        tree.chmod(0o755)
        _install(given.requirements, given.wheel, tree / "usr" / "lib" / "warren")
        _add_files(tree)
        _add_control(tree, version)
        command = ("dpkg-deb", "--root-owner-group", "--build", tree, given.directory)
        subprocess.run(command, check=True, stdout=sys.stderr)
    print(next(given.directory.glob(f"warren_{version}_*.deb")))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("directory", type=Path, help="where the package is written to")
    parser.add_argument(
        "--requirements", type=Path, default=ROOT / "deploy" / "requirements.lock",
        help="what is installed beside it (deploy/requirements.lock)",
    )  # fmt: skip
    return parser.parse_args()


def _install(requirements: Path, wheel: Path, place: Path) -> None:
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    options = ("--target", place, "--no-compile")
    locked = ("--only-binary=:all:", "--require-hashes", "--requirement", requirements)
    wanted = [["--no-deps", "--no-index", wheel]]
    if requirements.read_text().strip():
        wanted.append([*locked])
    for words in wanted:
        subprocess.run([*pip, *options, *words], check=True)
        shutil.rmtree(place / "bin")  # Of their programs, Warren's is the one that is offered.


def _add_files(tree: Path) -> None:
    _write(tree / "usr" / "bin" / "warren", LAUNCHER, 0o755)
    unit = (FILES / "warren.service").read_text()
    _write(tree / "lib" / "systemd" / "system" / "warren.service", unit)
    for name in ("README.md", "LICENSE"):
        _write(tree / "usr" / "share" / "doc" / "warren" / name, (ROOT / name).read_text())
    program = (
        "from warrenmq.app.configuration.example import example\n"
        "print(example(data='/var/lib/warren'), end='')"
    )
    shown = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    _write(tree / "etc" / "warren" / "warren.toml", shown.stdout.decode(), 0o640)


def _add_control(tree: Path, version: str) -> None:
    shown = subprocess.run(("dpkg", "--print-architecture"), check=True, capture_output=True)
    architecture = shown.stdout.decode().strip()
    control = CONTROL.format(version=version, architecture=architecture, python=PYTHON)
    _write(tree / "DEBIAN" / "control", control)
    _write(tree / "DEBIAN" / "conffiles", "/etc/warren/warren.toml\n")
    for name in SCRIPTS:
        _write(tree / "DEBIAN" / name, (FILES / name).read_text(), 0o755)


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


if __name__ == "__main__":
    main()
