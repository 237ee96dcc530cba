"""Describes an exchange or queue as XML, JSON or HTML, by content negotiation."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import msgspec
from starlette.responses import Response

from ...hub.engine.port import ExchangeSpec, QueueInfo
from ..problems import Problem
from ..requests.paths import Target
from .facets import FACETS, Action, Facet
from .negotiation import choose

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
Document = dict[str, Any]


def describe(
    target: Target, found: ExchangeSpec | QueueInfo, accept: str, stylesheet: str
) -> Response:
    """Returns the description. `stylesheet` is the URL of the XSLT that shows the XML in a browser.

    Raises `Problem` 406 if the client accepts none of the three.
    """
    media_type = choose(accept, tuple(_RENDERERS))
    if media_type is None:
        raise Problem(406, "descriptions are available as " + ", ".join(_RENDERERS))
    rendered = _RENDERERS[media_type](document(target, found), stylesheet)
    return Response(rendered, media_type=media_type, headers={"Vary": "Accept"})


def document(target: Target, found: ExchangeSpec | QueueInfo) -> Document:
    """Returns the description with the keys and nesting of RabbitHub's XML."""
    return {
        "name": target.name,
        "description": f"{target.kind.capitalize()} '{target.name}' in vhost '{target.vhost}'",
        "class": f"amqp.{target.kind}",
        "parameters": [
            {"name": name, "value": value} for name, value in _attributes(found).items()
        ],
        "facets": [_facet(FACETS[target.facet, target.letter])],
    }


def _attributes(found: ExchangeSpec | QueueInfo) -> dict[str, str]:
    if isinstance(found, ExchangeSpec):
        spec: Any = found
        own = {"exchange_type": found.type, "internal": _word(found.internal)}
    else:
        spec = found.spec
        own = {"messages_ready": str(found.messages_ready), "consumers": str(found.consumers)}
    arguments = {f"arg.{name}": _word(value) for name, value in spec.arguments.items()}
    return {
        **own,
        "durable": _word(spec.durable),
        "auto_delete": _word(spec.auto_delete),
        **arguments,
    }


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _facet(facet: Facet) -> Document:
    return {
        "name": facet.name,
        "description": facet.description,
        "actions": [_action(action) for action in facet.actions],
    }


def _action(action: Action) -> Document:
    mode = {} if action.mode is None else {"hub.mode": action.mode}
    parameters = [
        {
            "name": parameter.name,
            "location": parameter.location,
            "optional": _word(parameter.default is not None),
            **({} if parameter.default is None else {"defaultvalue": parameter.default}),
            "description": parameter.description,
        }
        for parameter in action.parameters
    ]
    return {
        "name": action.name,
        "http.method": action.method,
        **mode,
        "description": action.description,
        "parameters": parameters,
    }


def _xml(document: Document, stylesheet: str) -> str:
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    style = f'<?xml-stylesheet type="text/xsl" href={quoteattr(stylesheet)}?>\n'
    return head + style + _element("application", document)


def _element(tag: str, value: Document) -> str:
    """Returns an XML element. String values become attributes, except for the description, and
    name and class of the root."""
    as_elements = {"description"} | ({"name", "class"} if tag == "application" else set())
    attributes = children = ""
    content: Any
    for key, content in value.items():
        if isinstance(content, list):
            inner = "".join(_element(key.removesuffix("s"), item) for item in content)
            children += inner if tag == "action" else f"<{key}>{inner}</{key}>"
        elif key in as_elements:
            children += f"<{key}>{escape(_clean(content))}</{key}>"
        else:
            attributes += f" {key}={quoteattr(_clean(content))}"
    return f"<{tag}{attributes}>{children}</{tag}>" if children else f"<{tag}{attributes}/>"


def _clean(text: str) -> str:
    """Replaces characters that XML can't contain, not even escaped."""
    return _NOT_XML.sub("\ufffd", text)


def _html(document: Document, _: str) -> str:
    title = html.escape(document["description"])
    rows = "".join(map(_row, document["parameters"]))
    facets = "".join(map(_html_facet, document["facets"]))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<h1>{title}</h1><table>{rows}</table>{facets}</html>"
    )


def _row(parameter: Document) -> str:
    cells: tuple[str, str] = (
        parameter["name"],
        parameter["value"] if "value" in parameter else parameter["description"],
    )
    return "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"


def _html_facet(facet: Document) -> str:
    parts = [f"<h2>{html.escape(facet['name'])}</h2><p>{html.escape(facet['description'])}</p>"]
    for action in facet["actions"]:
        mode = f"?hub.mode={action['hub.mode']}" if "hub.mode" in action else ""
        rows = "".join(map(_row, action["parameters"]))
        parts.append(
            f"<h3>{action['http.method']} {html.escape(mode)}</h3>"
            f"<p>{html.escape(action['description'])}</p><table>{rows}</table>"
        )
    return "".join(parts)


def _json(document: Document, _: str) -> bytes:
    return msgspec.json.encode(document)


_RENDERERS: dict[str, Callable[[Document, str], str | bytes]] = {
    "text/xml": _xml,
    "application/xml": _xml,
    "application/json": _json,
    "text/html": _html,
}
