"""Crashes and faults against a real server: nothing that was confirmed is ever lost."""
