"""The runs of pipeline jobs, as they report themselves."""
