"""The definition of an output as its user gives it, with the limit of each member in its type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, get_args

import msgspec
from msgspec import Meta

from ..errors import BadRequest

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Names are part of URLs and of the names of queues."""
FeedName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_~.-]{1,100}$")]
Key = Annotated[str, Meta(max_length=255)]
"""An AMQP short string."""
Term = Annotated[str, Meta(min_length=1, max_length=200)]
Terms = Annotated[tuple[Term, ...], Meta(max_length=200)]
"""All terms of a filter are looked for in every item."""
Names = Annotated[dict[Term, Term], Meta(min_length=1, max_length=200)]
MAX_AGE_S: Final = 10 * 365 * 86_400
Member = Literal["authors", "attachments", "categories", "content", "image", "language", "summary"]
Cut = Literal["headline", "headline and summary", "headline and first paragraph"]
Visibility = Literal["public", "token"]
PLACEHOLDERS: Final = frozenset({"title", "feed"})
_PLACE: Final = re.compile(r"\$\.?([\w.\[\]\-]*)")
_CHOICES: Final = {
    "cut": get_args(Cut), "remove": get_args(Member), "visibility": get_args(Visibility),
}  # fmt: skip
_WORDS: Final = {"str": "string", "int": "whole number", "array": "list", "bool": "true or false"}
"""JSON's words for msgspec's."""


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An object whose unknown members are refused."""


class OutputSource(_Strict, frozen=True):
    """Exactly one of a feed, an exchange of the output's virtual host, and a stream queue there."""

    feed: FeedName | None = None
    exchange: Annotated[str, Meta(min_length=1, max_length=255)] | None = None
    routing_key: Key | None = None
    """The binding key of an exchange; by default `#`, all keys of a topic exchange, or the empty
    key of another."""
    stream: Annotated[str, Meta(min_length=1, max_length=255)] | None = None


class Choice(_Strict, frozen=True):
    """At least one of `any`, all of `all`, and nothing of `none`; an empty list asks nothing."""

    any: Terms = ()
    all: Terms = ()
    none: Terms = ()


class Filter(_Strict, frozen=True):
    """An item is taken if it fulfils all members."""

    words: Choice = Choice()
    """Words or phrases in title, summary or content, whatever their case."""
    categories: Choice = Choice()
    authors: Choice = Choice()
    languages: Choice = Choice()
    """`en` is also `en-GB`."""
    max_age_s: Annotated[int, Meta(ge=1, le=MAX_AGE_S)] | None = None
    """How old an item may be, by its own date, else since it arrived."""
    drop_near_duplicates: bool = False
    """Whether items are dropped that a run of the job `near-duplicates` has found."""


class Rename(_Strict, frozen=True):
    """New names by old ones, whose case is ignored."""

    categories: Names | None = None
    authors: Names | None = None


class Add(_Strict, frozen=True):
    categories: Annotated[tuple[Term, ...], Meta(min_length=1, max_length=20)]


class TransformStep(_Strict, frozen=True):
    """One operation of a transform: exactly one member is given."""

    cut: Cut | None = None
    max_characters: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    """The content becomes text of this length at most, cut between words."""
    title: Annotated[str, Meta(min_length=1, max_length=500)] | None = None
    """The new title, in which `{title}` is the old one and `{feed}` the name of the source."""
    rename: Rename | None = None
    remove: Annotated[tuple[Member, ...], Meta(min_length=1, max_length=7)] | None = None
    add: Add | None = None


class Definition(_Strict, frozen=True):
    """An output as its user has defined it."""

    sources: Annotated[tuple[OutputSource, ...], Meta(min_length=1, max_length=50)]
    title: Annotated[str, Meta(max_length=500)] = ""
    """The title, by default the output's name."""
    description: Annotated[str, Meta(max_length=5_000)] = ""
    filter: Filter = Filter()
    transform: Annotated[tuple[TransformStep, ...], Meta(max_length=20)] = ()
    visibility: Visibility = "public"
    """Whether everybody may read its documents, or only who has a token."""


def read_definition(given: Mapping[str, Any]) -> Definition:
    """Returns the definition. Raises `BadRequest`, which names the member, its value and the
    limit."""
    try:
        found = msgspec.convert(dict(given), Definition)
    except msgspec.ValidationError as error:
        raise _refused(str(error), given) from None
    for number, source in enumerate(found.sources):
        _check_source(source, f"sources[{number}]")
    for number, step in enumerate(found.transform):
        _check_step(step, f"transform[{number}]")
    if not _is_storable(given):
        raise BadRequest("has a NUL or half a surrogate pair", field="the body")
    return found


def _check_source(source: OutputSource, field: str) -> None:
    _require_one(field, {"feed": source.feed, "exchange": source.exchange, "stream": source.stream})
    if source.routing_key is not None and source.exchange is None:
        raise BadRequest(
            "is given without an exchange", field=f"{field}.routing_key", value=source.routing_key
        )
    for name, text in (("exchange", source.exchange), ("routing_key", source.routing_key),
                       ("stream", source.stream)):  # fmt: skip
        size = len((text or "").encode(errors="surrogatepass"))
        if size > 255:
            reason = f"is {size} bytes long"
            raise BadRequest(reason, field=f"{field}.{name}", value=text, limit="255 bytes")


def _check_step(step: TransformStep, field: str) -> None:
    _require_one(field, {name: getattr(step, name) for name in step.__struct_fields__})
    unknown = set(re.findall(r"\{(.*?)\}", step.title or "")) - PLACEHOLDERS
    if unknown:
        limit = ", ".join(f"{{{name}}}" for name in sorted(PLACEHOLDERS))
        reason = f"has the unknown placeholder {{{min(unknown)}}}"
        raise BadRequest(reason, field=f"{field}.title", value=step.title, limit=limit)
    if step.rename is not None and step.rename == Rename():
        raise BadRequest("is empty", field=f"{field}.rename", limit="categories, authors")


def _require_one(field: str, members: Mapping[str, object]) -> None:
    given = [name for name, value in members.items() if value is not None]
    if len(given) != 1:
        limit = f"exactly one of {', '.join(members)}"
        raise BadRequest(
            f"has {len(given)} of its members", field=field, value=", ".join(given), limit=limit
        )


def _refused(message: str, given: Mapping[str, Any]) -> BadRequest:
    """Returns the error for what msgspec says, such as ``Expected `int` >= 1 - at `$.a.b` ``."""
    reason, _, place = message.partition(" - at ")
    path = _PLACE.search(place)
    field = path[1] if path is not None and path[1] else "the body"
    value = _value_at(given, field) if path is not None and path[1] else None
    reason = reason.replace("`", "").removesuffix(".")
    if reason.startswith("Invalid enum value"):
        choices = _CHOICES[re.findall(r"[a-z]+", field)[-1]]
        return BadRequest("is unknown", field=field, value=_shown(value), limit=", ".join(choices))
    if reason.startswith("Expected"):
        limit = reason.removeprefix("Expected ").partition(", got ")[0]
        for type_name, word in _WORDS.items():
            limit = re.sub(rf"\b{type_name}\b", word, limit)
        return BadRequest("is not as expected", field=field, value=_shown(value), limit=limit)
    return BadRequest(reason[0].lower() + reason[1:], field=field)


def _value_at(given: Any, field: str) -> Any:
    """Returns the value at a path such as `filter.words.any[3]`, as far as it can be followed."""
    for name in re.findall(r"\w+|\[\d+\]", field):
        if name[0] == "[" and isinstance(given, list) and int(name[1:-1]) < len(given):
            given = given[int(name[1:-1])]
        elif isinstance(given, dict) and name in given:
            given = given[name]
        else:
            break
    return given


def _shown(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _is_storable(given: Mapping[str, Any]) -> bool:
    """Whether both databases take all texts of it."""
    try:
        return b"\\u0000" not in msgspec.json.encode(dict(given))
    except UnicodeEncodeError:
        return False
