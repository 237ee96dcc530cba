"""Small feeds to test with."""

from __future__ import annotations

ATOM_TYPE = "application/atom+xml; charset=utf-8"
RSS_TYPE = "application/rss+xml"
JSON_TYPE = "application/feed+json"


def atom(*entries: tuple[str, str], updated: str = "2026-11-21T00:00:00Z") -> bytes:
    """With entries of these ids and titles."""
    inside = "".join(
        f"\n <entry><id>{id_}</id><title>{title}</title><updated>{updated}</updated></entry>"
        for id_, title in entries
    )
    return f"""<?xml version="1.0"?>
<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><updated>{updated}</updated>{inside}
</feed>""".encode()


def rss(*items: str) -> bytes:
    inside = "".join(f"<item>{item}</item>" for item in items)
    return f'<rss version="2.0"><channel><title>News</title>{inside}</channel></rss>'.encode()
