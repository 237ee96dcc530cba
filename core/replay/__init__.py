"""What a new binding of a persistent exchange gets of the messages that it has kept."""
