"""Asking callbacks for their intent, and keeping what was promised to be asked."""
