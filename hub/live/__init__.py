"""Live subscriptions: readers that hold a connection open and get messages over it."""
