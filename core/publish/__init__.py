"""Publishing: targets, one message at a time, and publishing from inside the process."""
