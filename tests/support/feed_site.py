"""A web site with feeds that behaves as badly as it is told: each path has an answer in raw bytes.

A page without `raw` answers conditional requests as a server should.
"""

from __future__ import annotations

import hashlib
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

RSS = "application/rss+xml"


@dataclass
class Page:
    """An answer; with `raw` exactly these bytes, sent piece by piece with a pause between them.
    With `wait` only the first byte of the body is sent until that is set."""

    body: bytes = b""
    content_type: str = RSS
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    is_conditional: bool = True
    raw: list[bytes] | None = None
    pause_s: float = 0.0
    wait: threading.Event | None = None


@dataclass(frozen=True)
class Fetched:
    """A request that has come."""

    method: str
    path: str
    headers: dict[str, str]
    status: int
    body: bytes = b""


class FeedSite:
    """Serves `pages` by path, 404 for others; `fetched` lists the requests."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.fetched: list[Fetched] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                with suppress(ConnectionError):  # a server that is restarted
                    site._answer(self, b"")

            def do_POST(self) -> None:
                site._answer(self, self.rfile.read(int(self.headers["Content-Length"] or 0)))

            def log_message(self, *_: Any) -> None:
                """Tests look at `fetched`."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        """Without a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def statuses(self, path: str) -> list[int]:
        """The answers to requests for a path, in order."""
        return [one.status for one in self.fetched if one.path == path]

    def _answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        page = self.pages.get(handler.path, Page(b"no such page", "text/plain", 404))
        etag = f'W/"{hashlib.sha256(page.body).hexdigest()[:16]}"'
        is_known = page.is_conditional and handler.headers["If-None-Match"] == etag
        status = 304 if is_known and page.raw is None and page.status == 200 else page.status
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.fetched.append(Fetched(handler.command, handler.path, headers, status, body))
        if page.raw is not None:
            _send_raw(handler, page)
            return
        handler.send_response(status)
        for name, value in page.headers.items():
            handler.send_header(name, value)
        if status == 200:
            handler.send_header("Content-Type", page.content_type)
            if page.is_conditional:
                handler.send_header("ETag", etag)
        content = b"" if status == 304 else page.body
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        if page.wait is not None:
            handler.wfile.write(content[:1])
            page.wait.wait(60)
            content = content[1:]
        handler.wfile.write(content)


def _send_raw(handler: BaseHTTPRequestHandler, page: Page) -> None:
    handler.close_connection = True
    try:
        for piece in page.raw or []:
            handler.wfile.write(piece)
            handler.wfile.flush()
            time.sleep(page.pause_s)
    except OSError:
        pass  # the hub has had enough


def rss(*titles: str, head: str = "", title: str = "The news", prefix: str = "id-") -> bytes:
    """An RSS feed with an item for each title, the newest first; their ids follow from them."""
    items = "".join(
        f"<item><title>{one}</title><guid isPermaLink='false'>{prefix}{one}</guid>"
        f"<link>http://example.com/{one}</link><description>About {one}</description></item>"
        for one in titles
    )
    return (
        f"<rss version='2.0'><channel><title>{title}</title><link>http://example.com/</link>"
        f"<description>d</description>{head}{items}</channel></rss>"
    ).encode()
