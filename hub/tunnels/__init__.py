"""Tunnels: applications without an address of their own answer HTTP requests that they poll for."""
