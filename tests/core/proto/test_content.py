from __future__ import annotations

import pytest

from tests.conformance.frames import BODY, HEADER, content_header
from warrenmq.core.errors import ConnectionFault
from warrenmq.core.proto.content import Content
from warrenmq.core.resources.partial_content import PartialContents

METHOD = b"method"


def begin() -> Content:
    return Content(METHOD, PartialContents().begin("guest", lambda _: None), 0)


def test_without_body_the_header_completes_it() -> None:
    content = begin()
    assert content.add(HEADER, content_header(0, {"priority": 3}))
    assert content.properties == b"\x08\x00\x03"
    assert content.body() == b""
    assert content.method == METHOD


def test_body_in_one_frame() -> None:
    content = begin()
    assert not content.add(HEADER, content_header(4))
    assert content.add(BODY, b"body")
    assert content.body() == b"body"
    assert content.body_bytes == 4


def test_body_in_many_frames_and_empty_ones() -> None:
    content = begin()
    content.add(HEADER, content_header(4))
    assert [content.add(BODY, part) for part in (b"b", b"", b"od", b"y")] == [
        False, False, False, True,
    ]  # fmt: skip
    assert content.body() == b"body"


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        pytest.param([(BODY, b"body")], 505, id="body before its header"),
        pytest.param([(HEADER, content_header(1)), (HEADER, content_header(1))], 505,
                     id="two headers"),
        pytest.param([(HEADER, content_header(1, class_id=50))], 505, id="header of class queue"),
        pytest.param([(HEADER, content_header(1)[:13])], 502, id="header cut short"),
        pytest.param([(HEADER, content_header(3)), (BODY, b"four")], 501, id="body too long"),
        pytest.param([(HEADER, content_header(3)), (BODY, b"ab"), (BODY, b"cd")], 501,
                     id="second frame too long"),
    ],
)  # fmt: skip
def test_faults(frames: list[tuple[int, bytes]], code: int) -> None:
    content = begin()
    *fine, last = frames
    for frame in fine:
        content.add(*frame)
    with pytest.raises(ConnectionFault) as caught:
        content.add(*last)
    assert caught.value.code == code
