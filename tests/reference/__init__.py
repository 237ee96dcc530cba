"""Writes docs/reference from the code: `python -m tests.reference`, or `make reference`."""
