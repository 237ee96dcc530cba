"""Warren for test suites and programs that bring their own broker (docs/testing.md)."""
