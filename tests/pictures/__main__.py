"""Draws every picture anew."""

from . import FOLDER, draw

for source in sorted(FOLDER.glob("*.txt")):
    source.with_suffix(".svg").write_text(draw(source.read_text()))
