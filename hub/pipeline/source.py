"""The data source `warren`: `spark.read.format("warren")`, `readStream`, `write`, `writeStream`."""

from __future__ import annotations

from typing import Final

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from .options import read_options, with_token
from .reader import StreamBatchReader
from .schema import COLUMNS
from .stream_reader import MicroBatchReader
from .writer import ExchangeWriter, StreamExchangeWriter

_TYPES: Final[dict[str, DataType]] = {
    kind.simpleString(): kind
    for kind in (
        StringType(), LongType(), IntegerType(), TimestampType(), BinaryType(),
        MapType(StringType(), StringType()),
    )
}  # fmt: skip
SCHEMA: Final = StructType([StructField(name, _TYPES[kind]) for name, kind in COLUMNS.items()])


class WarrenDataSource(DataSource):
    """Streams of a Warren server as data frames, and its exchanges as places to write them to."""

    @classmethod
    def name(cls) -> str:
        return "warren"

    def schema(self) -> StructType:
        """Returns all columns. Raises `OptionError`: here, so that `load` does."""
        read_options(self._given)
        return SCHEMA

    @property
    def _given(self) -> dict[str, str]:
        """The options. Tasks elsewhere don't have the driver's environment."""
        return with_token(self.options)

    def reader(self, schema: StructType) -> StreamBatchReader:
        return StreamBatchReader(read_options(self._given), columns(schema))

    def streamReader(self, schema: StructType) -> MicroBatchReader:
        return MicroBatchReader(self._given, columns(schema))

    def writer(self, schema: StructType, overwrite: bool) -> ExchangeWriter:
        return ExchangeWriter(self._given, columns(schema), overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamExchangeWriter:
        # With `overwrite`, which is the output mode complete, all rows are published again.
        return StreamExchangeWriter(self._given, columns(schema))


def columns(schema: StructType) -> dict[str, str]:
    """Returns names and types of a schema."""
    return {field.name: field.dataType.simpleString() for field in schema.fields}
