"""A soak: mixed load for an hour, with rests and restarts, and a look at what grows."""
