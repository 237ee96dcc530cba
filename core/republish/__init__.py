"""Republishing from queues to exchanges: dead letters, and delayed messages that are due."""
