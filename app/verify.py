"""`warren verify`: checks every byte of a stopped server's log and says what it found, and what of
it can't be served."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import click

from ..core.errors import ConfigError
from ..core.store.disk import RealDisk
from ..core.store.offline import LOG, OfflineLog, verify
from .data_directory import held
from .repair import lines, unreadable


def run(data: str) -> bool:
    """Prints a line for each file; True if all is sound.

    Raises `ConfigError` if there is no log, or a server is using it.
    """
    folder = Path(data) / LOG
    if not folder.is_dir():
        raise ConfigError(f"{data}: no data of a server; give the directory that it ran with")
    files = records = size = faults = 0
    told = set()
    with held(data):
        disk = RealDisk(folder)
        for finding in verify(disk):
            files += 1
            records += finding.records
            size += finding.size
            faults += len(finding.faults)
            told |= {finding.name} if finding.faults else set()
            state = "ok" if not finding.faults else "; ".join(finding.faults)
            click.echo(f"{finding.name}: {finding.records} records, {finding.size} bytes: {state}")
        left_over = _left_over(disk, told)
        for line in left_over:
            click.echo(line)
        faults += len(left_over)
    verdict = "all sound" if not faults else f"{faults} faults"
    click.echo(f"{files} files, {records} records, {size} bytes: {verdict}")
    return not faults


def _left_over(disk: RealDisk, told: Collection[str]) -> list[str]:
    """What a start would leave over; of files that can't be read those not told of before."""
    try:
        log = OfflineLog(disk)
        return [*lines(log), *unreadable(log, but=told)]
    except ConfigError as error:
        return [f"no start is possible: {error}"]
