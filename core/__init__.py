"""The broker core: an AMQP 0-9-1 server, and its interface for applications in the same process."""

VERSION = "0.1.0"
