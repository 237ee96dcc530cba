"""Messages that leave a queue for others: dead letters, and delayed ones that are due."""
