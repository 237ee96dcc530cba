"""Descriptions: the stylesheet that shows them, and the facets that they are made of."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from warrenmq.app.describe import describe
from warrenmq.app.error_pages import STATIC
from warrenmq.app.facets import FACETS
from warrenmq.app.paths import Target
from warrenmq.app.routes.endpoint import STYLESHEET
from warrenmq.hub.engine.port import ExchangeSpec, QueueInfo, QueueSpec
from warrenmq.hub.subscriptions.options import PARAMETERS

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
def test_the_stylesheet_shows_all_that_is_said(target: Target) -> None:
    sheet = ElementTree.parse(STATIC.parent / STYLESHEET).getroot()
    chosen = {found.get("select", "") for found in sheet.iter(f"{XSL}value-of")}
    assert said(document(target)) - {"@optional"} <= chosen


def test_the_stylesheet_walks_to_every_element() -> None:
    sheet = ElementTree.parse(STATIC.parent / STYLESHEET).getroot()
    paths = " ".join(
        found.get(key, "") for found in sheet.iter() for key in ("match", "select") if key
    )
    walked = set(re.findall(r"[a-z]+", paths))
    assert {element.tag for target in TARGETS for element in document(target).iter()} <= walked


@pytest.mark.parametrize("letter", ["x", "q"])
def test_a_subscribe_tells_every_option(letter: str) -> None:
    told = {
        parameter.name
        for action in FACETS["subscribe", letter].actions
        if action.name == "subscribe"
        for parameter in action.parameters
    }
    assert told >= set(PARAMETERS)


def test_what_must_be_given_is_told() -> None:
    root = document(Target("subscribe", "/", "x", "a"))
    (action,) = (one for one in root.iter("action") if one.get("name") == "subscribe")
    needed = {
        one.get("name") for one in action.findall("parameter") if one.get("optional") == "false"
    }
    assert needed == {"hub.callback", "hub.topic"}
    (lease,) = (one for one in action if one.get("name") == "hub.lease_seconds")
    assert (lease.get("defaultvalue"), lease.get("location")) == ("2592000", "body")
