"""Messages as documents: entries of feeds in JSON, and plain texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ENTRY: Final = (
    "from_json(plain, 'id string, title string, content string, content_html string,"
    " content_text string')"
)
_CONTENT: Final = "coalesce(entry.content_html, entry.content_text, entry.content)"
_WRITTEN: Final = (
    f"if(coalesce(entry.title, {_CONTENT}) IS NULL, plain, concat_ws(' ', entry.title, {_CONTENT}))"
)
_TAG: Final = "'</?[a-zA-Z!][^>]*>'"


def documents(rows: DataFrame) -> DataFrame:
    """Returns `offset`, `timestamp`, `exchange`, `routing_key`, `id` and `text` of messages.

    A body is an item of JSON Feed (`id`, `title`, `content_html` or `content_text`; `content` is
    read too), or else it is the text. Tags are left out. What has no id has the message's, or its
    offset.
    """
    return (
        rows.selectExpr(
            "offset", "timestamp", "exchange", "routing_key", "message_id",
            "make_valid_utf8(cast(body AS string)) AS plain",
        )
        .selectExpr("*", f"{_ENTRY} AS entry")
        .selectExpr(
            "offset", "timestamp", "exchange", "routing_key",
            "coalesce(entry.id, message_id, cast(offset AS string)) AS id",
            f"regexp_replace({_WRITTEN}, {_TAG}, ' ') AS text",
        )
    )  # fmt: skip
