"""The scenarios that every client runs: java, go and rust by one program each, which prints a line
for each of them in this order, the Python libraries by test_scenarios.py."""

from __future__ import annotations

SCENARIOS = (
    "publishes are confirmed",
    "unroutable messages come back",
    "a full queue says nack",
    "a transaction is committed or rolled back",
    "calls are answered",
    "numbers may be of any width",
    "a bad argument closes the channel",
    "properties and headers arrive as they were sent",
    "bodies of all sizes arrive",
    "a prefetch bounds what is delivered",
    "dead letters tell where they were",
    "the end of a queue cancels its consumer",
    "messages with a priority go first",
    "a single active consumer hands over",
    "a quorum queue counts what came back",
    "a stream is read from anywhere",
)
