"""Messages: batches of them, their values, and the arguments that tables carry."""
