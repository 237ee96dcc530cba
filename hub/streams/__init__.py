"""Reading streams over HTTP (docs/streams.md): which stream, from where, and how much at once."""
