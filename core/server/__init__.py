"""The edge of the core: sockets, tasks and the loop."""
