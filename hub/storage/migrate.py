"""Runs Alembic's migrations inside the transaction of a connection."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Runs the migrations up to a revision."""
    from alembic import command

    command.upgrade(_config(connection), revision)


def downgrade(connection: Connection, revision: str) -> None:
    """Reverts the migrations after a revision."""
    from alembic import command

    command.downgrade(_config(connection), revision)


def revision_of(connection: Connection) -> str | None:
    """Returns the schema's revision, None for an empty database, without importing alembic."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return None if revision is None else str(revision)


def _config(connection: Connection) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
