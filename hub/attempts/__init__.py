"""The log of attempts, in SQL, for a limited time."""
