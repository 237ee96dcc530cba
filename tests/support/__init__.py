"""What tests share: real servers on free loopback ports, and a callback that listens."""
