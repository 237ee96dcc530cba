"""What is kept in SQL: SQLite or PostgreSQL, opened when the first thing is stored."""
