"""Where messages are kept: the port, and a twin that keeps them in memory."""
