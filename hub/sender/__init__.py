"""The sender: what posts a delivery to its callback."""
