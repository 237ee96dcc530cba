"""`warren verify`: checks every byte of a stopped server's log and reports what can't be served."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import click

from ..core.errors import ConfigError
from ..core.store.disk import RealDisk
from ..core.store.offline import LOG, OfflineLog, verify
from .data_directory import locked
from .repair import lines, unreadable


def run(data: str) -> bool:
    """Prints a line for each file; returns whether no fault was found.

    Raises `ConfigError` if there is no log, or a server is using it.
    """
    folder = Path(data) / LOG
    if not folder.is_dir():
        raise ConfigError(f"{data}: no log in it; give the data directory of a server")
    files = records = size = faults = 0
    reported = set()
    with locked(data):
        disk = RealDisk(folder)
        for finding in verify(disk):
            files += 1
            records += finding.records
            size += finding.size
            faults += len(finding.faults)
            reported |= {finding.name} if finding.faults else set()
            state = "ok" if not finding.faults else "; ".join(finding.faults)
            click.echo(f"{finding.name}: {finding.records} records, {finding.size} bytes: {state}")
        not_served = _not_served(disk, reported)
        for line in not_served:
            click.echo(line)
        faults += len(not_served)
    summary = "all sound" if not faults else f"{faults} faults"
    click.echo(f"{files} files, {records} records, {size} bytes: {summary}")
    return not faults


def _not_served(disk: RealDisk, reported: Collection[str]) -> list[str]:
    """Returns a line for each thing that a start could not serve, without the files in
    `reported`."""
    try:
        log = OfflineLog(disk)
        return [*lines(log), *unreadable(log, but=reported)]
    except ConfigError as error:
        return [f"no start is possible: {error}"]
