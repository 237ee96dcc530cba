"""The XML namespaces that the formats know, by their usual prefixes."""

from __future__ import annotations

ATOM = "http://www.w3.org/2005/Atom"
ATOM_03 = "http://purl.org/atom/ns#"
XML = "http://www.w3.org/XML/1998/namespace"
XHTML = "http://www.w3.org/1999/xhtml"
SVG = "http://www.w3.org/2000/svg"
MATHML = "http://www.w3.org/1998/Math/MathML"
RSS_10 = "http://purl.org/rss/1.0/"
RSS_090 = "http://my.netscape.com/rdf/simple/0.9/"
URIS = {
    "atom": ATOM,
    "content": "http://purl.org/rss/1.0/modules/content/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "itunes": "http://www.itunes.com/dtds/podcast-1.0.dtd",
    "media": "http://search.yahoo.com/mrss/",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "sy": "http://purl.org/rss/1.0/modules/syndication/",
    "xhtml": XHTML,
    "xml": XML,
}
_ALIASES = {
    ATOM_03: "atom",
    "http://search.yahoo.com/mrss": "media",
    RSS_10: "",
    RSS_090: "",
    "http://channel.netscape.com/rdf/simple/0.9/": "",
    "http://blogs.law.harvard.edu/tech/rss": "",
    "http://purl.org/rss/1.0/modules/rss091#": "",
}
_PREFIXES = {
    **{uri.lower(): prefix for prefix, uri in URIS.items()},
    **{uri.lower(): prefix for uri, prefix in _ALIASES.items()},
}
_USERLAND = "http://backend.userland.com/rss"
"""The beginning of namespaces that some feeds of RSS 2.0 declare by mistake."""


def known_name(name: str) -> str:
    """Returns `prefix:local`, or `local` for RSS's own; a name of another namespace is unchanged.

    Names are written as `ElementTree` does: `{namespace}local`. Letters of namespaces count in
    either case, as feeds mix them.
    """
    if name[:1] != "{":
        return name
    uri, _, local = name[1:].rpartition("}")
    uri = uri.lower()
    prefix = "" if uri.startswith(_USERLAND) else _PREFIXES.get(uri)
    if prefix is None:
        return name
    return f"{prefix}:{local}" if prefix else local
