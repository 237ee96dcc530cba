"""Verification of intent: requests to callbacks, and the store of those still to be made."""
