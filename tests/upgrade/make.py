"""Makes the fixture of this version: `python -m tests.upgrade.make`, once for each release.

The server is killed in the end, so there are a checkpoint and a log behind it.
"""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.support.http import Callback
from tests.support.server import WarrenServer
from warrenmq.core import VERSION

from .content import add, fill, shown

FIXTURES: Final = Path(__file__).parent / "data"
EXPECTED: Final = "expected.json"
MAX_BYTES: Final = 200_000


def make(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, Callback() as callback:
        data = Path(folder, "data")
        with WarrenServer(data=data, env={"WARREN_MAX_ATTEMPTS": "1"}) as server:
            secrets = fill(server, callback)
            server.restart()
            add(server)
            expected = {"secrets": secrets, "shown": shown(server, secrets)}
            server.kill()
        with tarfile.open(target, "w:xz") as archive:
            archive.add(data, "data", filter=_kept)
            text = json.dumps(expected, indent=1).encode()
            member = tarfile.TarInfo(EXPECTED)
            member.size, member.mtime = len(text), time.time()
            archive.addfile(member, io.BytesIO(text))
    size = target.stat().st_size
    assert size < MAX_BYTES, f"{target} has {size} bytes, more than {MAX_BYTES}"


def _kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leaves out what each start makes anew."""
    return None if Path(member.name).name in ("lock", "reserve") else member


if __name__ == "__main__":
    FIXTURES.mkdir(exist_ok=True)
    fixture = FIXTURES / f"{VERSION}.tar.xz"
    make(fixture)
    print(fixture, fixture.stat().st_size)
