"""A black-box load generator: bytes in, bytes out, and what the broker spent between them."""
