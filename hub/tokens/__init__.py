"""Tokens with scopes, which limit what their holder may read and write, and until when."""
