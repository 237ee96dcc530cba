"""The query that `make torture-pipeline` kills: what a stream gets is published to an exchange."""

from __future__ import annotations

import argparse
import sys

from warrenmq.hub.pipeline.session import spark_session

STREAM, EXCHANGE = "from", "to"
ROWS_AT_ONCE = 50_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("checkpoint")
    parser.add_argument("--once", action="store_true", help="end where the stream ends")
    given = parser.parse_args()
    # Nobody is to come before it: it has to make progress between two kills.
    spark = spark_session("torture", niceness=0)
    reading = spark.readStream.format("warren").option("url", given.url).option("stream", STREAM)
    frame = reading.option("maxRowsPerTrigger", str(ROWS_AT_ONCE)).option("minPartitions", "2")
    rows = frame.load().selectExpr("body", "routing_key", "message_id")
    writing = rows.writeStream.format("warren").option("url", given.url)
    writing = writing.option("exchange", EXCHANGE).option("checkpointLocation", given.checkpoint)
    if given.once:
        writing = writing.trigger(availableNow=True)
    writing.start().awaitTermination()
    return 0


if __name__ == "__main__":
    sys.exit(main())
