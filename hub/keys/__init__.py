"""Secrets at rest, tokens, and the one key of both."""
