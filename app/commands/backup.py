"""`warren backup` and `warren restore`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ...core.counted import counted
from ...core.errors import ConfigError
from . import backup_files
from .client import ApiClient, segments
from .exit_codes import CommandError, reason_of
from .options import JSON, examples, with_server
from .printer import Printer
from .progress import progress

_SNAPSHOTS = "/api/warren/snapshots"
_POSTGRESQL = "postgresql"


@click.command(
    help="""Copy a running server's data to TARGET, an empty directory.

    The copy contains everything that was confirmed before, as of one moment. The command runs on
    the server's machine, as a user who may read its data directory.""",
    epilog=examples(
        "warren backup /backup/$(date +%F) --user admin --password-file secret.txt",
        "warren restore /backup/2026-01-31 --data warren-data",
    ),
)
@click.argument("target", type=click.Path(path_type=Path, file_okay=False))
@with_server
def backup(api: ApiClient, out: Printer, target: Path) -> None:
    backup_files.require_empty(target)
    snapshot = api.post(_SNAPSHOTS)
    source = Path(snapshot.pop("directory"))
    try:
        size = _size(source)
        with progress(size, "copying") as advance:
            manifest = backup_files.copy(source, target, snapshot, advance)
    except OSError as error:
        raise ConfigError(
            f"{target}: the backup failed: {_reason_of(error)}; remove what it has left there"
        ) from error
    finally:
        api.delete(f"{_SNAPSHOTS}{segments(snapshot['id'])}", idempotent=True)
    if out.as_json:
        out.one({**snapshot, "files": len(manifest.files), "bytes": manifest.size_bytes})
    out.say(f"{target} has {_contents(manifest)}")
    if snapshot["database"] == _POSTGRESQL:
        click.echo("the hub's database is PostgreSQL: copy it with pg_dump", err=True)


@click.command(
    help="""Copy the backup SOURCE into an empty data directory.

    `warren serve` starts with it. Each file is compared with the digest that was taken when it was
    copied.""",
    epilog=examples("warren restore /backup/2026-01-31 --data warren-data"),
)
@click.argument("source", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--data", required=True, metavar="DIR", help="Empty, or not there yet.")
@JSON
def restore(source: Path, data: str, *, as_json: bool) -> None:
    out = Printer(as_json=as_json)
    manifest = backup_files.read_manifest(source)
    try:
        with progress(manifest.size_bytes, "copying") as advance:
            backup_files.restore(source, data, manifest, advance)
    except OSError as error:
        raise ConfigError(f"{data}: the restore failed: {_reason_of(error)}") from error
    if as_json:
        out.one({"data": data, "files": len(manifest.files), "bytes": manifest.size_bytes})
    out.say(f"{data} has {_contents(manifest)}")
    if manifest.snapshot.get("database") == _POSTGRESQL:
        click.echo("the hub's database was PostgreSQL: restore it with pg_restore", err=True)


def _reason_of(error: OSError) -> str:
    """Returns what went wrong, and with which of the files."""
    file = "" if error.filename is None else f" ({error.filename})"
    return f"{reason_of(error)}{file}"


def _contents(manifest: backup_files.BackupManifest) -> str:
    files, size = counted(len(manifest.files), "file"), counted(manifest.size_bytes, "byte")
    return f"{files}, {size}"


def _size(source: Path) -> int:
    """Raises `CommandError` if the snapshot can't be read here."""
    if not os.access(source, os.R_OK | os.X_OK):
        raise CommandError(
            f"{source} can't be read here: run this command on the server's machine, as the user "
            "of the server"
        )
    return backup_files.sizes(source)
