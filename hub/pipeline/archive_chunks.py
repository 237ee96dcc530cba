"""A program that reads an archive for a server, chunks or the offset of a time: a request on
standard input, the answer on standard output. It is a process of its own, since Arrow takes memory
and time."""

from __future__ import annotations

import sys
import zlib

import msgspec

from .archived import ArchivedStream, ArchiveFolder, NotArchived
from .errors import PipelineError


class Question(msgspec.Struct, frozen=True):
    """A request for the messages of a stream from `start` on, before `end`, from the first of the
    archives at `places` that has them. All lie below `top`. With `since_ms` only the offset of the
    first one that arrived then (milliseconds since 1970) or later."""

    top: str
    places: list[str]
    stream: ArchivedStream
    stream_id: int
    start: int
    end: int
    limit_bytes: int
    since_ms: int | None = None


class ArchiveAnswer(msgspec.Struct, frozen=True):
    """The line before the chunks, with the number of their messages. Without any: why, and whether
    no archive has them or what has them is broken. `at` is the offset of a time, None if all are
    older; `checksum` is that of the chunks."""

    count: int
    reason: str = ""
    is_broken: bool = False
    at: int | None = None
    checksum: int = 0


def answer(question: Question) -> tuple[ArchiveAnswer, bytes]:
    """Returns the answer and the chunks."""
    reasons: list[str] = []
    for place in question.places:
        try:
            found = _read(ArchiveFolder(question.top, place, question.stream), question)
        except NotArchived as error:
            reasons.append(str(error))
        except ImportError as error:
            reasons.append(
                f"its archive needs {error.name}: pip install 'warrenmq[arrow]' on the server"
            )
        except (PipelineError, OSError, ValueError) as error:  # Those of Arrow are `ValueError`.
            return ArchiveAnswer(0, f"archive {place}: {error}", is_broken=True), b""
        else:
            return found
    return ArchiveAnswer(0, "; ".join(reasons)), b""


def _read(folder: ArchiveFolder, question: Question) -> tuple[ArchiveAnswer, bytes]:
    if question.since_ms is not None:
        from .archive_times import first_since

        return ArchiveAnswer(0, at=first_since(folder, question.since_ms)), b""
    from .archive_rows import read_rows
    from .chunk_encoding import encode_chunks

    rows = read_rows(folder, question.start, question.end, question.limit_bytes)
    count, data = encode_chunks(rows, question.stream_id, question.limit_bytes)
    return ArchiveAnswer(count, checksum=zlib.crc32(data)), data


def main() -> None:
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=Question)
    found, data = answer(question)
    sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
    sys.stdout.buffer.write(data)


if __name__ == "__main__":
    main()
