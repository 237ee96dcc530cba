"""Writes a picture as SVG: it has a background of its own, so it is legible on any page, title and
description for who can't see it, and the colours of the reader's scheme."""

from __future__ import annotations

from html import escape

from .layout import HEIGHT, Layout, PlacedArrow, PlacedBox

# Those of static/ui/style/tokens.css.
LIGHT = {
    "panel": "#f1efea", "text": "#211d19", "label": "#625a51", "line": "#8a8075",
    "client": "#ffffff", "exchange": "#e6effa", "queue": "#fbf0dc", "callback": "#e3f2ed",
    "store": "#f1e6f2",
}  # fmt: skip
DARK = {
    "panel": "#1c1a18", "text": "#ede8e1", "label": "#aaa095", "line": "#82776c",
    "client": "#262320", "exchange": "#16273a", "queue": "#352710", "callback": "#16332b",
    "store": "#2f1f33",
}  # fmt: skip
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
LINES = ("panel", "text", "label", "line")
HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
    'orient="auto"><path d="M0 0 L8 4 L0 8 z" class="head"/></marker></defs>'
)
ROUND = {"client": 20, "exchange": 4, "queue": 4, "callback": 20, "store": 4}


def write(layout: Layout) -> str:
    """Returns the document, with a line for each box and arrow."""
    width, height = f"{layout.width:g}", f"{layout.height:g}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" aria-labelledby="title description">',
            f'<title id="title">{escape(layout.picture.title)}</title>',
            f'<desc id="description">{escape(layout.picture.description)}</desc>',
            f"<style>{_style()}</style>",
            HEAD,
            f'<rect width="{width}" height="{height}" rx="8" class="panel"/>',
            *map(_arrow, layout.arrows),
            *map(_box, layout.boxes),
            *(_text(one.x, one.y, one.label, "label") for one in layout.arrows if one.label),
            "</svg>\n",
        ]
    )


def _style() -> str:
    return (
        f"text {{ font: 13px {FONT}; text-anchor: middle }} .label {{ font-size: 12px; "
        "paint-order: stroke; stroke-width: 4px; stroke-linejoin: round } .arrow { fill: none; "
        f"stroke-width: 1.5px }} .back {{ stroke-dasharray: 5 4 }} {_colours(LIGHT)} "
        f"@media (prefers-color-scheme: dark) {{ {_colours(DARK)} }}"
    )


def _colours(scheme: dict[str, str]) -> str:
    kinds = [name for name in scheme if name not in LINES]
    rules = [f".{kind} {{ fill: {scheme[kind]}; stroke: {scheme['line']} }}" for kind in kinds]
    return " ".join(
        [
            *rules,
            f".panel {{ fill: {scheme['panel']} }}",
            f".name {{ fill: {scheme['text']} }}",
            f".label {{ fill: {scheme['label']}; stroke: {scheme['panel']} }}",
            f".arrow {{ stroke: {scheme['line']} }} .head {{ fill: {scheme['line']} }}",
        ]
    )


def _arrow(arrow: PlacedArrow) -> str:
    kind = "arrow back" if arrow.back else "arrow"
    return f'<path d="{arrow.path}" class="{kind}" marker-end="url(#head)"/>'


def _box(placed: PlacedBox) -> str:
    kind, name = placed.box.kind, placed.box.name
    place = f'x="{placed.x:g}" y="{placed.y:g}" width="{placed.width:g}" height="{HEIGHT}"'
    middle = placed.x + placed.width / 2
    return f'<rect {place} rx="{ROUND[kind]}" class="{kind}"/>' + _text(
        middle, placed.y + HEIGHT / 2 + 4.5, name, "name"
    )


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(text)}</text>'
