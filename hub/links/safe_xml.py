"""Expat for untrusted documents: no DOCTYPE, so no entities, and a bound on depth.

What it takes of time and memory is bounded by the worker process that it runs in.

Expat reads bytes, which lets whoever needs it tell where in the document something stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar
from xml.parsers import expat

SEPARATOR = " "
"""Between the namespace and the local name; neither can hold a space."""
MAX_DEPTH = 200
_CHUNK_BYTES = 256 * 1024  # expat scans an unfinished token again with each, so not too small
_OF_ENCODING = frozenset(
    expat.errors.codes[text]
    for text in (
        expat.errors.XML_ERROR_INVALID_TOKEN,
        expat.errors.XML_ERROR_PARTIAL_CHAR,
        expat.errors.XML_ERROR_UNKNOWN_ENCODING,
        expat.errors.XML_ERROR_INCORRECT_ENCODING,
    )
)


class _Refused(ValueError):
    """The document is not read any further; the text says why."""


@dataclass(frozen=True, slots=True)
class Broken:
    """Why a document was not read to its end."""

    reason: str
    is_refused: bool
    """Whether it goes against the rules here; else it is no XML from some place on."""


class Handler(Protocol):
    """Told of elements, whose names are `namespace local` or `local`, and of text."""

    def begin(self, name: str, attributes: dict[str, str], at: int) -> None:
        """`at` is where the start tag begins, in bytes of the document."""

    def end(self, name: str, at: int) -> None:
        """`at` is where the end tag begins, or where an empty element ends."""

    def text(self, data: str) -> None: ...


H = TypeVar("H", bound=Handler)


def parse(body: bytes, make: Callable[[], H]) -> tuple[H, Broken | None]:
    """A handler that was told of the document, and why not of all of it, if it was not.

    Where bytes are not what the document's encoding allows, and where expat does not know that
    encoding, a new handler is told of them as ISO 8859-1: markup is ASCII in nearly all, so
    names and places are right and only text beyond ASCII is not.
    """
    handler = make()
    try:
        _Parse(handler, None).run(body)
        return handler, None
    except _Refused as error:
        return handler, Broken(str(error), is_refused=True)
    except expat.ExpatError as error:
        if error.code not in _OF_ENCODING:
            return handler, _not_well_formed(error)
    except (LookupError, ValueError):
        pass  # an encoding that Python does not know, or of several bytes a character
    return _parse_as_bytes(body, make())


def _parse_as_bytes(body: bytes, handler: H) -> tuple[H, Broken | None]:
    try:
        _Parse(handler, "iso-8859-1").run(body)
    except _Refused as error:
        return handler, Broken(str(error), is_refused=True)
    except expat.ExpatError as error:
        return handler, _not_well_formed(error)
    return handler, None


def _not_well_formed(error: expat.ExpatError) -> Broken:
    return Broken(f"it is not well-formed: {error}", is_refused=False)


class _Parse:
    def __init__(self, handler: Handler, encoding: str | None) -> None:
        self._handler = handler
        self._depth = 0
        parser = self._parser = expat.ParserCreate(encoding, SEPARATOR)
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = handler.text

    def run(self, body: bytes) -> None:
        for start in range(0, len(body), _CHUNK_BYTES):
            self._parser.Parse(body[start : start + _CHUNK_BYTES], False)
        self._parser.Parse(b"", True)

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _Refused(f"elements are more than {MAX_DEPTH} deep")
        self._handler.begin(name, attributes, self._parser.CurrentByteIndex)

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._handler.end(name, self._parser.CurrentByteIndex)

    def _refuse_doctype(self, *_: object) -> None:
        raise _Refused("it has a DOCTYPE, which could define entities")


def local_name(name: str) -> str:
    return name.rpartition(SEPARATOR)[2]
