"""Memory and disk: what is in use, paging, alarms and limits."""
