"""Publishing: resolved targets, the general path for one message, and in-process clients."""
