"""Encryption of stored secrets, tokens, and the keys of both."""
