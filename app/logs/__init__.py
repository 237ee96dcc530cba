"""Log lines: their two formats, what they say of the request that they are about, and levels."""
