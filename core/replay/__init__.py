"""Replays the stored messages of a persistent exchange to a new binding."""
