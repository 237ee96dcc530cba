"""Which URLs are dialled at all: the same answer for every request that the hub makes."""
