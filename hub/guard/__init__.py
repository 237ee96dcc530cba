"""Decides which URLs and addresses the hub sends requests to, and connects to them."""
