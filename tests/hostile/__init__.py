"""Hostile, careless and unlucky clients: the server bears them, and nobody else notices."""
