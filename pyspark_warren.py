"""Where Spark finds the data source `warren`: `DefaultSource` in a module named `pyspark_*`."""

from warrenmq.hub.pipeline.session import require_spark

try:
    from warrenmq.hub.pipeline.source import WarrenDataSource as DefaultSource
except ImportError:
    require_spark()
    raise

__all__ = ["DefaultSource"]
