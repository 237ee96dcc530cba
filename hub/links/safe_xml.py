"""Expat for untrusted documents: no declarations, hence no entities, and a limit of depth.

A DOCTYPE may name a DTD, as that of RSS 0.91 does; it is not read.
The worker process that it runs in limits time and memory. Expat reads bytes, so it can report the
positions of elements in the document.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar
from xml.parsers import expat

SEPARATOR = " "
"""Between the namespace and the local name; neither can hold a space."""
MAX_DEPTH = 200
DECLARATIONS = "its DOCTYPE has declarations, which could define entities"
_CHUNK_BYTES = 256 * 1024  # expat scans an unfinished token again in each chunk
_PROLOG_CHUNK_BYTES = 1_024
_ENCODING_ERRORS = frozenset(
    expat.errors.codes[text]
    for text in (
        expat.errors.XML_ERROR_INVALID_TOKEN,
        expat.errors.XML_ERROR_PARTIAL_CHAR,
        expat.errors.XML_ERROR_UNKNOWN_ENCODING,
        expat.errors.XML_ERROR_INCORRECT_ENCODING,
    )
)


class _Refused(ValueError):
    """The document breaks a rule, and is not read further."""


@dataclass(frozen=True, slots=True)
class Broken:
    """The reason why a document was not read to its end."""

    reason: str
    is_refused: bool
    """Whether it breaks a rule of this module; else it is not well-formed."""


class Handler(Protocol):
    """Gets elements, whose names are `namespace local` or `local`, and text."""

    def begin(self, name: str, attributes: dict[str, str], at: int) -> None:
        """An element begins; its start tag is at byte `at`."""

    def end(self, name: str, at: int) -> None:
        """An element ends; `at` is where its end tag begins, or where an empty element ends."""

    def text(self, data: str) -> None:
        """A piece of text."""


H = TypeVar("H", bound=Handler)


def parse(body: bytes, make: Callable[[], H]) -> tuple[H, Broken | None]:
    """Parses the document; returns its handler, and the fault if it has one.

    A document with an unknown encoding, or with bytes that its encoding does not allow, is parsed
    again with a new handler as ISO 8859-1: markup is ASCII in nearly all encodings, so names and
    positions are right, and only text beyond ASCII is wrong.
    """
    handler = make()
    try:
        _Parse(handler, None).run(body)
        return handler, None
    except _Refused as error:
        return handler, Broken(str(error), is_refused=True)
    except expat.ExpatError as error:
        if error.code not in _ENCODING_ERRORS:
            return handler, _not_well_formed(error)
    except (LookupError, ValueError):
        pass  # an encoding that Python does not know, or with several bytes a character
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
    """One run of expat over a document."""

    def __init__(self, handler: Handler, encoding: str | None) -> None:
        self._handler = handler
        self._depth = 0
        parser = self._parser = expat.ParserCreate(encoding, SEPARATOR)
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.StartDoctypeDeclHandler = _refuse_declarations
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


def has_declarations(body: bytes, encoding: str | None) -> bool:
    """Returns whether the document's DOCTYPE has declarations; only the prolog is read."""
    begun: list[str] = []
    parser = expat.ParserCreate(encoding)
    parser.StartDoctypeDeclHandler = _refuse_declarations
    parser.StartElementHandler = lambda name, _: begun.append(name)
    try:
        for start in range(0, len(body), _PROLOG_CHUNK_BYTES):
            parser.Parse(body[start : start + _PROLOG_CHUNK_BYTES], False)
            if begun:
                break
    except _Refused:
        return True
    except (expat.ExpatError, LookupError, ValueError):
        pass  # whoever reads the document finds the fault
    return False


def _refuse_declarations(_: str, __: str | None, ___: str | None, has_declarations: bool) -> None:
    if has_declarations:
        raise _Refused(DECLARATIONS)


def local_name(name: str) -> str:
    """Returns the name without its namespace."""
    return name.rpartition(SEPARATOR)[2]
