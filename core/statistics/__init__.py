"""Statistics since the start of the server: messages, traffic and churn, and their rates."""
