"""The live overview: what the web UI shows of the whole server, once a second."""
