"""What became of each attempt to deliver, in SQL for as long as it is worth keeping."""
