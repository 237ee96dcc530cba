"""Data directories of earlier versions, which every later one has to open."""
