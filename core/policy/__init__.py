"""Policies: rules that operators set for queues and exchanges, by patterns of their names."""
