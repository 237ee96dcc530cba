"""The SQL database, SQLite or PostgreSQL, opened when something is stored first."""
