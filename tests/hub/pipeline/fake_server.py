"""A server of one stream that drops messages, is made again and fails as a test wants it."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

from .chunks import STREAM, batch, chunk, plain


class FakeServer:
    """Serves chunks of ten messages each; `failures` are answered before anything else.

    `first` and `incarnation` can be changed, and chunks left out, as they would be by retention, by
    deletion and by a server that has lost some. It ends connections without a word if it is
    `closing`.
    """

    def __init__(self, count: int = 50) -> None:
        self.first, self.incarnation = 0, "one"
        self.bytes: int | None = 0
        self.failures: list[int] = []
        self.paths: list[str] = []
        self.authorization: str | None = None
        self.left_out: Sequence[int] = ()
        self.closing = False
        self.chunks = {at: chunk(batch(plain(10)), at) for at in range(0, count, 10)}

    @property
    def next(self) -> int:
        return max(self.chunks) + 10

    @property
    def options(self) -> dict[str, str]:
        return {"url": f"http://127.0.0.1:{self._server.server_port}", "stream": STREAM}

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        self.paths.append(path)
        if self.failures:
            return self._problem(self.failures.pop(0), "not now")
        parts = urlsplit(path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == f"/streams/%2F/{STREAM}/offsets":
            return self._offsets(query)
        if parts.path == f"/streams/%2F/{STREAM}/chunks":
            return self._chunks(query)
        return self._problem(404, f"{parts.path} is no stream")

    def _offsets(self, query: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        found = {"first": self.first, "next": self.next, "incarnation": self.incarnation}
        if "timestamp" in query:
            found["at"] = 20
        if "start" in query:
            found["limit"] = int(query["start"]) + int(query["max_bytes"]) // 1000
        return 200, {}, json.dumps(found | {"bytes": self.bytes}).encode()

    def _chunks(self, query: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        start, end = int(query["start"]), int(query["end"])
        if query["incarnation"] != self.incarnation:
            return self._problem(410, f"incarnation {query['incarnation']} is gone")
        if start < self.first:
            return self._problem(410, f"offset {start} is gone, the first is {self.first}")
        last = min(start // 10 * 10 + 20, -(-end // 10) * 10, self.next)
        wanted = [at for at in range(start // 10 * 10, last, 10) if at not in self.left_out]
        headers = {"Warren-Next-Offset": str(max(start, last))}
        return 200, headers, b"".join(self.chunks[at] for at in wanted)

    def _problem(self, status: int, detail: str) -> tuple[int, dict[str, str], bytes]:
        return status, {}, json.dumps({"detail": detail}).encode()

    def __enter__(self) -> Self:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                fake.authorization = self.headers["Authorization"]
                status, headers, body = fake.answer(self.path)
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
                self.close_connection |= fake.closing

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stops listening; what is connected stays so."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread.is_alive():
            self.stop()
