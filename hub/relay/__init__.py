"""Sends requests of users to other servers."""
