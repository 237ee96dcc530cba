"""`make test`: the tests, and a second try, alone, for the few that fail."""
