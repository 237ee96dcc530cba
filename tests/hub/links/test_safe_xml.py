"""What untrusted XML may not do (reliability.md 57, 61)."""

from __future__ import annotations

from warrenmq.hub.links.safe_xml import MAX_DEPTH, Broken, local_name, parse


class Names:
    """Notes each element with where it begins and ends, and all text."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, int]] = []
        self.ended: list[tuple[str, int]] = []
        self.data = ""

    def begin(self, name: str, attributes: dict[str, str], at: int) -> None:
        self.begun.append((name, at))

    def end(self, name: str, at: int) -> None:
        self.ended.append((name, at))

    def text(self, data: str) -> None:
        self.data += data


def refused(broken: Broken | None, reason: str) -> bool:
    return broken is not None and broken.is_refused and reason in broken.reason


def test_places_are_bytes_of_the_document() -> None:
    body = '<a xmlns="urn:x">é<b>ß</b></a>'.encode()
    names, broken = parse(body, Names)
    assert broken is None and names.data == "éß"
    assert names.begun == [("urn:x a", 0), ("urn:x b", body.index(b"<b>"))]
    assert names.ended == [("urn:x b", body.index(b"</b>")), ("urn:x a", body.index(b"</a>"))]
    assert local_name("urn:x a") == "a" and local_name("a") == "a"


def test_declarations_are_refused_before_their_entities_are_read() -> None:
    """Neither inner ones nor external ones. A DTD is not read."""
    assert parse(b"<!DOCTYPE a PUBLIC 'b' 'file:///etc/passwd'><a/>", Names)[1] is None
    for entity in (b'"ha"', b'SYSTEM "file:///etc/passwd"'):
        names, broken = parse(b"<!DOCTYPE a [<!ENTITY b " + entity + b">]><a>&b;&b;</a>", Names)
        assert refused(broken, "DOCTYPE") and names.begun == [] and names.data == ""


def test_depth_is_bounded() -> None:
    assert parse(b"<a>" * MAX_DEPTH + b"</a>" * MAX_DEPTH, Names)[1] is None
    names, broken = parse(b"<a>" * 100_000, Names)
    assert refused(broken, str(MAX_DEPTH)) and len(names.begun) == MAX_DEPTH


def test_a_stray_byte_does_not_hide_the_rest() -> None:
    names, broken = parse(b"<a>\xff<b/></a>", Names)
    assert broken is None and names.data == "ÿ" and len(names.begun) == 2


def test_a_broken_document_is_read_up_to_the_fault() -> None:
    names, broken = parse(b"<a><b></c>", Names)
    assert broken is not None and not broken.is_refused and "mismatched" in broken.reason
    assert len(names.begun) == 2
    assert parse(b"no markup", Names)[1] is not None


def test_utf_16() -> None:
    body = '<?xml version="1.0" encoding="utf-16"?><a><b/></a>'.encode("utf-16")
    names, broken = parse(body, Names)
    assert broken is None and names.begun[1][1] == body.index("<b/>".encode("utf-16-le"))
