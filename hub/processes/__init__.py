"""Child processes of the server, which start without the event loop waiting for them."""
