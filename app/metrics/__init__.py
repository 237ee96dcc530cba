"""Metrics for Prometheus: tables of families, and the text that shows them."""
