"""Processes with limits of time and memory, for functions on untrusted bytes."""
