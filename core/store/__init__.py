"""The message store: its interface, a durable store on disk, and a store in memory."""
