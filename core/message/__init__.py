"""Messages: batches, properties, field values, and the arguments shared by queues and exchanges."""
