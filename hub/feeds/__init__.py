"""Registered feeds: polled, compared, and published entry by entry."""
