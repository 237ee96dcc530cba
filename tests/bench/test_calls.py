"""What is read out of the tools that count system calls."""

from __future__ import annotations

import pytest

from .calls import CountingError, parse_perf, parse_strace

PERF = """# started on Sat Nov 21 12:00:00 2026

1250,,raw_syscalls:sys_enter,2000000,100.00,,
3,,syscalls:sys_enter_fsync,2000000,100.00,,
40,,syscalls:sys_enter_fdatasync,2000000,100.00,,
"""
STRACE = """% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000060           6        10           fdatasync
 20.00    0.000020           5         4           fsync
 20.00    0.000020           1        20         3 read
------ ----------- ----------- --------- --------- ----------------
100.00    0.000100           2        34         3 total
"""


def test_perf_counts_are_all_calls_and_the_syncs() -> None:
    assert parse_perf(PERF) == (1_250, 43)


def test_strace_counts_are_all_calls_and_the_syncs() -> None:
    assert parse_strace(STRACE) == (34, 14)


@pytest.mark.parametrize("value", ["<not counted>", "<not supported>"])
def test_what_perf_did_not_count_is_no_number(value: str) -> None:
    with pytest.raises(CountingError, match=value):
        parse_perf(PERF.replace("1250", value))


def test_an_event_that_perf_leaves_out_is_an_error() -> None:
    with pytest.raises(CountingError, match="counted only"):
        parse_perf("\n".join(PERF.splitlines()[:-1]))


def test_strace_without_a_table_is_an_error() -> None:
    with pytest.raises(CountingError, match="no table"):
        parse_strace("strace: attach: Operation not permitted")
