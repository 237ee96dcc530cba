"""Durable definitions (virtual hosts, users, queues ...): encoding, writing, restoring."""
