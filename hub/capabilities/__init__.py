"""URLs that let their holder post to one resource: for callbacks, in place of credentials."""
