"""Outputs: feeds made of feeds, exchanges and streams, and the documents of all feeds."""
