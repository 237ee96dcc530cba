"""Results of pipeline jobs by the hour: kept for charts, bounded."""
