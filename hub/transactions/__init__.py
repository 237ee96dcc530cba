"""Rows that are staged by several tasks and published by one commit, exactly once."""
