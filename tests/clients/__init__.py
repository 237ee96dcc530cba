"""Real clients against a real broker: Warren, or RabbitMQ to check the tests themselves."""
