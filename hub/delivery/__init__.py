"""Delivery: from a subscription's queue to its callback, with retries, or to its sink."""
