"""Definitions as a file: `warren definitions export` and `import`."""
