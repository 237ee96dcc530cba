"""Descriptions: the stylesheet that shows them, and the facets that they are made of."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from warrenmq.app.requests.paths import Target
from warrenmq.app.responses.describe import describe
from warrenmq.app.responses.error_pages import PAGES
from warrenmq.app.routes.endpoint import STYLESHEET
from warrenmq.hub.engine.port import ExchangeSpec, QueueInfo, QueueSpec

XSL = "{http://www.w3.org/1999/XSL/Transform}"
TARGETS = [
    Target(facet, "/", letter, "a") for facet in ("endpoint", "subscribe") for letter in ("x", "q")
]


def document(target: Target) -> ElementTree.Element:
    spec = ExchangeSpec("a") if target.letter == "x" else QueueInfo(QueueSpec("a"), 0, 0)
    body = describe(target, spec, "text/xml", "s.xsl").body
    return ElementTree.fromstring(bytes(body))


def said(root: ElementTree.Element) -> set[str]:
    """Names of the elements that hold text, and of all attributes as `@name`."""
    texts = {element.tag for element in root.iter() if element.text}
    return texts | {f"@{name}" for element in root.iter() for name in element.attrib}


@pytest.mark.parametrize("target", TARGETS, ids=Target.path)
def test_the_stylesheet_shows_every_value(target: Target) -> None:
    sheet = ElementTree.parse(PAGES / Path(STYLESHEET).name).getroot()
    chosen = {found.get("select", "") for found in sheet.iter(f"{XSL}value-of")}
    assert said(document(target)) - {"@optional"} <= chosen


def test_the_stylesheet_walks_to_every_element() -> None:
    sheet = ElementTree.parse(PAGES / Path(STYLESHEET).name).getroot()
    paths = " ".join(
        found.get(key, "") for found in sheet.iter() for key in ("match", "select") if key
    )
    walked = set(re.findall(r"[a-z]+", paths))
    assert {element.tag for target in TARGETS for element in document(target).iter()} <= walked
