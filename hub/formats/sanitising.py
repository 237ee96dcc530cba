"""Makes items valid in all formats: invalid URLs, dates, languages and texts are left out, and what
is not harmless in HTML.

Items come from other people's feeds and from any exchange, so their members may hold anything.
"""

from __future__ import annotations

import msgspec

from .dates import normalised
from .model import Attachment, Author, FeedHead, Item
from .safe_html import harmless
from .urls import DocumentUrls, language, link, media_type, resource
from .xml_writing import clean


def valid_item(item: Item) -> Item:
    """Returns the item, written into every format without a further check."""
    return Item(
        id=item.id,
        url=link(item.url),
        external_url=link(item.external_url),
        title=clean(item.title),
        content_html=harmless(clean(item.content_html)),
        content_text=clean(item.content_text),
        summary=clean(item.summary),
        image=resource(item.image),
        banner_image=resource(item.banner_image),
        date_published=normalised(item.date_published),
        date_modified=normalised(item.date_modified),
        authors=_authors(item.authors),
        tags=_texts(item.tags),
        language=language(item.language),
        attachments=[found for one in item.attachments if (found := _attachment(one)).url],
        extensions=item.extensions,
    )


def valid_head(head: FeedHead, urls: DocumentUrls) -> FeedHead:
    """Returns the head; a title is required everywhere, so the document's URL stands for none."""
    return msgspec.structs.replace(
        head,
        title=clean(head.title) or urls.document_url,
        home_page_url=link(head.home_page_url),
        feed_url=urls.self_url,
        description=clean(head.description),
        icon=resource(head.icon),
        favicon=resource(head.favicon),
        language=language(head.language),
        authors=_authors(head.authors),
        tags=_texts(head.tags),
        copyright=clean(head.copyright),
    )


def _authors(authors: list[Author]) -> list[Author]:
    found = (Author(clean(one.name), link(one.url), resource(one.avatar)) for one in authors)
    return [one for one in found if one.name or one.url]


def _attachment(one: Attachment) -> Attachment:
    return msgspec.structs.replace(
        one, url=resource(one.url), mime_type=media_type(one.mime_type), title=clean(one.title)
    )


def _texts(texts: list[str]) -> list[str]:
    return list(dict.fromkeys(text for one in texts if (text := clean(one).strip())))
