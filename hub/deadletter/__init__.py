"""Dead letters: messages that failed for good."""
