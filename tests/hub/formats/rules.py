"""The rules of the three formats, as their specifications write them: what a validator checks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from jsonschema import Draft202012Validator

ATOM = "{http://www.w3.org/2005/Atom}"
XHTML = "{http://www.w3.org/1999/xhtml}"
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
MEDIA_TYPE = re.compile(r"[^\s/;]+/[^\s/;]+")
TAG = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")
ONCE = {
    "feed": ("generator", "icon", "logo", "rights", "subtitle"),
    "entry": ("content", "published", "rights", "source", "summary"),
}
TEXTS = ("title", "subtitle", "summary", "rights")
SCHEMA = json.loads(Path(__file__).with_name("json_feed_1.1.schema.json").read_text())
JSON_FEED = Draft202012Validator(SCHEMA)


def check_atom(body: bytes) -> None:
    """What RFC 4287 demands with MUST, by its sections."""
    feed = ElementTree.fromstring(body)
    assert feed.tag == f"{ATOM}feed"
    entries = feed.findall(f"{ATOM}entry")
    for one in (feed, *entries):
        _check_container(one)
    assert _has_author(feed) or all(map(_has_author, entries)), "4.1.1"
    ids = [entry.findtext(f"{ATOM}id") for entry in entries]
    assert len(set(ids)) == len(ids), "4.1.1: entries with one id are the same entry"
    for entry in entries:
        content = entry.find(f"{ATOM}content")
        assert content is not None or _alternates(entry), "4.1.2"
        if content is not None:
            assert "src" not in content.attrib or entry.find(f"{ATOM}summary") is not None
            assert "src" not in content.attrib or not (content.text or len(content)), "4.1.3.2"
    for one in feed.iter():
        _check_element(one)


def _check_container(one: Element) -> None:
    """4.1.1 and 4.1.2: how often a feed or entry has what."""
    for name in ("id", "title", "updated"):
        assert len(one.findall(f"{ATOM}{name}")) == 1, f"{name} is not there exactly once"
    for name in ONCE[one.tag.removeprefix(ATOM)]:
        assert len(one.findall(f"{ATOM}{name}")) <= 1, f"{name} is there more than once"
    alternates = _alternates(one)
    assert len(set(alternates)) == len(alternates), "alternates of one type and language"


def _check_element(one: Element) -> None:
    """3 and 4.2: what each element of Atom has, wherever it is."""
    name = one.tag.removeprefix(ATOM)
    assert TAG.fullmatch(one.get(LANGUAGE, "en")), "2"
    if name == one.tag:
        return
    if name in TEXTS:
        kind = one.get("type", "text")
        assert kind in ("text", "html", "xhtml"), "3.1.1"
        assert [child.tag for child in one] == [f"{XHTML}div"] * (kind == "xhtml"), "3.1.1"
    elif name == "content" and one.get("type", "text") in ("text", "html"):
        assert not len(one), "4.1.3.3"
    elif name in ("author", "contributor"):
        names, addresses, emails = (one.findall(ATOM + it) for it in ("name", "uri", "email"))
        assert [bool(it.text) for it in names] == [True], "3.2.1"
        assert len(addresses) <= 1 and len(emails) <= 1, "3.2.2, 3.2.3"
        assert all(IRI.fullmatch(it.text or "") for it in addresses), "3.2.2"
        assert all(re.fullmatch(".+@.+", it.text or "") for it in emails), "3.2.3"
    elif name in ("updated", "published"):
        assert DATE.fullmatch(one.text or ""), one.text
    elif name in ("id", "icon", "logo"):
        assert IRI.fullmatch(one.text or ""), f"{name} is no IRI: {one.text}"
    elif name == "link":
        assert IRI.fullmatch(one.attrib["href"]) and MEDIA_TYPE.fullmatch(one.get("type", "a/b"))
        assert re.fullmatch(r"[^:\s]+|[A-Za-z][\w+.-]*:\S+", one.get("rel", "alternate")), "4.2.7.2"
        assert one.get("length", "0").isdigit() and TAG.fullmatch(one.get("hreflang", "en"))
    elif name == "category":
        assert one.get("term") and IRI.fullmatch(one.get("scheme", "a:b")), "4.2.2"


def _has_author(one: Element) -> bool:
    return one.find(f"{ATOM}author") is not None


def _alternates(one: Element) -> list[tuple[str | None, str | None]]:
    links = one.findall(f"{ATOM}link")
    found = [link for link in links if link.get("rel", "alternate") == "alternate"]
    return [(link.get("type"), link.get("hreflang")) for link in found]


def check_rss(body: bytes) -> None:
    """RSS 2.0.11, and the profile of the RSS Advisory Board."""
    root = ElementTree.fromstring(body)
    assert (root.tag, root.get("version")) == ("rss", "2.0")
    [channel] = root
    for name in ("title", "link", "description"):
        assert len(channel.findall(name)) == 1 and channel.findtext(name), name
    items = channel.findall("item")
    guids = [item.findtext("guid") for item in items]
    assert len(set(guids)) == len(items)
    for item in items:
        assert item.find("title") is not None or item.find("description") is not None
        assert len(item.findall("enclosure")) <= 1 and len(item.findall("pubDate")) <= 1
        assert item.find("guid") is not None and item.find("guid[@isPermaLink='false']") is not None
    for link in [*root.iterfind("channel/link"), *root.iterfind("channel/item/link")]:
        assert IRI.fullmatch(link.text or "")
    for date in [*root.iter("pubDate"), *root.iter("lastBuildDate")]:
        assert parsedate_to_datetime(date.text or "").tzinfo is not None
    for one in root.iter("enclosure"):
        assert IRI.fullmatch(one.attrib["url"]) and MEDIA_TYPE.fullmatch(one.attrib["type"])
        assert one.attrib["length"].isdigit()


def check_json(body: bytes) -> None:
    """JSON Feed 1.1, by its schema, and what a schema can't say."""
    feed = json.loads(body)
    JSON_FEED.validate(feed)
    ids = [item["id"] for item in feed["items"]]
    assert len(set(ids)) == len(ids)
    assert "next_url" not in feed or feed["next_url"] != feed["feed_url"]


CHECKS: dict[str, Callable[[bytes], None]] = {
    "atom": check_atom,
    "rss": check_rss,
    "json": check_json,
}
