"""The rules for publishing: targets, checks, single messages, batches, returns and confirms."""
