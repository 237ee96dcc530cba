"""The engine outside of this process: a RabbitMQ cluster, over AMQP and its management API."""
