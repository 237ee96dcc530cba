"""The hub on a cluster of three RabbitMQ nodes: to try it, and to torture it."""
