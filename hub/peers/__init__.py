"""The hubs that share a database: one is active, the others wait until it ends."""
