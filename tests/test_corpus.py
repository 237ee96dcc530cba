"""The corpus of real-world feeds is whole and carries its content types."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import corpus


def test_corpus_has_over_two_thousand_documents() -> None:
    documents = corpus.feed_documents()
    types = {document.content_type for document in documents}
    assert len(documents) >= 2_000
    assert len({document.path for document in documents}) == len(documents)
    assert {"application/atom+xml", 'application/xml-dtd; charset="us-ascii"'} <= types
    assert all(document.body for document in documents)


def test_archive_with_other_content_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_CACHE", str(tmp_path))
    (tmp_path / corpus.ARCHIVE).write_bytes(b"something else")
    with pytest.raises(ValueError, match="SHA-256"):
        corpus.feed_documents()
