"""Sending messages again: dead letters, those that wait for a retry, and delivered ones."""
