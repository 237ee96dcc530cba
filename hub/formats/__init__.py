"""Feeds of all formats: read into one model, and written from it."""
