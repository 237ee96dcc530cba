"""`warren verify`: checks every byte of a stopped server's log and reports what can't be served."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...core.counted import counted
from ...core.errors import ConfigError
from ...core.store.disk import RealDisk
from ...core.store.offline import LOG, OfflineLog, StoreFinding, verify
from ..data_directory import locked_for_reading
from .printer import Printer
from .progress import progress
from .repair import Unserved, unreadable, unserved


def run(data: str, out: Printer) -> bool:
    """Prints each file, what a start could not serve, and totals; returns whether no fault was
    found.

    Raises `ConfigError` if there is no log, this user may not read it, or a server is using it.
    """
    try:
        return _run(data, out)
    except PermissionError as error:
        text = f"{error.filename}: {error.strerror}; run this command as the user of the server"
        raise ConfigError(text) from error


def _run(data: str, out: Printer) -> bool:
    folder = Path(data) / LOG
    if not folder.is_dir():
        raise ConfigError(f"{data}: no log in it; give the data directory of a server")
    with locked_for_reading(data):
        disk = RealDisk(folder, read_only=True)
        found = _verified(disk, sum(one.stat().st_size for one in folder.iterdir()))
        for one in found:
            _print(one, out)
        not_served = _not_served(disk, found)
    for missing in not_served:
        out.say(missing.text)
    if out.as_json:
        out.rows([missing.document for missing in not_served], (), "")
    records, size = sum(one.records for one in found), sum(one.size for one in found)
    faults = sum(len(one.faults) for one in found) + len(not_served)
    totals = {"files": len(found), "records": records, "bytes": size, "faults": faults}
    if out.as_json:
        out.one(totals)
    summary = counted(faults, "fault") if faults else "all sound"
    out.say(f"{counted(len(found), 'file')}, {_contents(records, size)}: {summary}")
    return not faults


def _verified(disk: RealDisk, size: int) -> list[StoreFinding]:
    """Returns the findings of all files."""
    found = []
    with progress(size, "verifying") as advance:
        for one in verify(disk):
            found.append(one)
            advance(one.size)
    return found


def _print(finding: StoreFinding, out: Printer) -> None:
    if out.as_json:
        figures = {"records": finding.records, "bytes": finding.size}
        out.one({"file": finding.name, **figures, "faults": finding.faults})
    state = "; ".join(finding.faults) or "ok"
    out.say(f"{finding.name}: {_contents(finding.records, finding.size)}: {state}")


def _contents(records: int, size: int) -> str:
    return f"{counted(records, 'record')}, {counted(size, 'byte')}"


def _not_served(disk: RealDisk, found: Sequence[StoreFinding]) -> list[Unserved]:
    """Returns what a start could not serve, without files whose faults were found."""
    reported = {one.name for one in found if one.faults}
    try:
        log = OfflineLog(disk)
        return [*unserved(log), *unreadable(log, but=reported)]
    except ConfigError as error:
        text = f"no start is possible: {error}"
        return [Unserved(text, {"error": text})]
