"""What each HTTP path does."""
