"""The data source for Spark, and all else that runs in Spark's processes and never in the hub's."""
