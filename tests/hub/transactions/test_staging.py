"""What is staged has a limit, expires, and is counted again after a restart."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from warrenmq.core.clock import ManualClock
from warrenmq.hub.transactions.staged_files import PIECE_MIN_BYTES, StagingFull
from warrenmq.hub.transactions.staging import (
    MissingPiece,
    Piece,
    StagedAttempt,
    StagedTransaction,
    Staging,
)

LIFETIME_S = 100
FIRST, SECOND = (StagedTransaction("/", "user\0x\0query", number) for number in (1, 2))
OTHER = StagedTransaction("/", "other\0x\0query", 1)
PIECE = Piece(0, 0, 0)
KB = 1024
LIMIT = 200 * KB


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def staging(tmp_path: Path, clock: ManualClock) -> Staging:
    return Staging(tmp_path / "staged", LIMIT, LIFETIME_S, clock)


async def test_a_user_has_no_more_than_is_free(
    staging: Staging, tmp_path: Path, clock: ManualClock
) -> None:
    await staging.put(FIRST, PIECE, bytes(60 * KB))
    await staging.put(FIRST, PIECE, bytes(40 * KB))  # in its place
    await staging.put(SECOND, PIECE, bytes(60 * KB))
    restarted = Staging(tmp_path / "staged", LIMIT, LIFETIME_S, clock)
    await restarted.start()
    for one in (staging, restarted):
        with pytest.raises(StagingFull, match=f"{100 * KB} bytes of this user .* {100 * KB} of"):
            await one.put(SECOND, PIECE._replace(place=1), b"x")
    await restarted.put(OTHER, PIECE, bytes(50 * KB))
    await restarted.remove(SECOND)
    await restarted.put(FIRST, PIECE._replace(place=1), bytes(30 * KB))


async def test_tiny_pieces_count_too(staging: Staging) -> None:
    for place in range(LIMIT // 2 // PIECE_MIN_BYTES):
        await staging.put(FIRST, PIECE._replace(place=place), b"x")
    with pytest.raises(StagingFull):
        await staging.put(FIRST, PIECE._replace(place=99), b"x")


async def test_a_full_disk(staging: Staging, tmp_path: Path) -> None:
    """What could not be written is neither there nor counted."""
    folder = tmp_path / "staged" / FIRST.folder
    folder.mkdir(parents=True)
    for _ in range(3):
        (folder / f"{PIECE.file}.part").symlink_to("/dev/full")
        with pytest.raises(StagingFull, match="the disk is full"):
            await staging.put(FIRST, PIECE, bytes(60 * KB))
    assert not os.listdir(folder)
    await staging.put(FIRST, PIECE, bytes(60 * KB))


async def test_pieces_that_come_and_go_at_once(staging: Staging) -> None:
    """Requests that are repeated or given up meet each other, and nothing is counted twice."""
    for _ in range(10):
        puts = [staging.put(FIRST, PIECE, bytes([value]) * 60 * KB) for value in range(8)]
        tasks = [asyncio.create_task(put) for put in (*puts, staging.remove(FIRST))]
        await asyncio.sleep(0)
        tasks[3].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await staging.put(FIRST, PIECE, bytes(60 * KB))
    assert await staging.read(FIRST, PIECE) == bytes(60 * KB)
    await staging.put(SECOND, PIECE, bytes(40 * KB))
    with pytest.raises(StagingFull, match=f"{100 * KB} bytes of this user"):
        await staging.put(SECOND, PIECE._replace(place=1), b"x")


async def test_transactions_expire_after_their_lifetime(
    staging: Staging, tmp_path: Path, clock: ManualClock
) -> None:
    for transaction in (FIRST, SECOND):
        await staging.put(transaction, PIECE, bytes(50 * KB))
    now_s = clock.wall_s()
    for transaction, age_s in ((FIRST, LIFETIME_S + 1), (SECOND, LIFETIME_S - 1)):
        os.utime(tmp_path / "staged" / transaction.folder, (now_s - age_s, now_s - age_s))
    await staging.expire()
    with pytest.raises(MissingPiece):
        await staging.require(FIRST, [StagedAttempt(0, 0, 1)])
    assert await staging.read(SECOND, PIECE) == bytes(50 * KB)
    await staging.put(FIRST, PIECE, bytes(50 * KB))
