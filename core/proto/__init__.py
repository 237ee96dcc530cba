"""The AMQP state machines, sans-IO: bytes in, bytes out, no socket and no task."""
