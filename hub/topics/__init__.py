"""External topics: fetched when their publishers ping, and distributed to subscribers."""
