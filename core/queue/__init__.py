"""Queues: order, consumers and credit, expiry, limits, dead letters."""
