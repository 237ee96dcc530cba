"""Fetching of foreign pages, from vetted addresses and up to a size."""
