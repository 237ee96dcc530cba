"""Helpers of tests: real servers on free loopback ports, and a callback that listens."""
