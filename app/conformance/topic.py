"""A topic: a document with links to the hub and itself (WebSub 4)."""

from __future__ import annotations

import hashlib

from . import transcript
from .exchange import Answer, Request
from .transcript import Transcript


class Topic:
    """A document at `url`; every spelling of the path returns the same document."""

    def __init__(self, url: str, hub: str, trace: Transcript, content_type: str, body: bytes):
        self.url = url
        self.self_url = url
        self.content_type = content_type
        self.body = body
        self.status = 200
        self.fetches: list[Request] = []
        self._hub = hub
        self._trace = trace

    async def answer(self, request: Request) -> Answer:
        self.fetches.append(request)
        answer = self._answer(request)
        shown = f" {transcript.body(answer.body)}" if answer.status == 200 else ""
        self._trace.received(f"{request.method} {request.target}", f"{answer}{shown}")
        return answer

    def _answer(self, request: Request) -> Answer:
        if request.method not in ("GET", "HEAD"):
            return Answer(405)
        if self.status != 200:
            return Answer(self.status)
        tag = f'"{hashlib.sha256(self.body).hexdigest()[:16]}"'
        links = f'<{self._hub}>; rel="hub", <{self.self_url}>; rel="self"'
        headers = {"ETag": tag, "Link": links}
        if request.headers.get("If-None-Match") == tag:
            return Answer(304, headers)
        return Answer(200, headers | {"Content-Type": self.content_type}, self.body)
