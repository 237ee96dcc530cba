"""`warren bench throughput`: measures any AMQP 0-9-1 broker; it knows nothing of Warren."""
