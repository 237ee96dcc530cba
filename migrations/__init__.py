"""Migrations of the hub's SQL schema, run by alembic when a newer Warren opens a database."""
