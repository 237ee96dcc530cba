"""Bytes on the wire: frames, methods, properties, and the batch scanner and framer."""
