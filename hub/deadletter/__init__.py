"""Dead letters: what could not be delivered for good."""
