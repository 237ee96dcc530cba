"""Topics of others: fetched when their publishers ping, and distributed to subscribers."""
