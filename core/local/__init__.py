"""Publishing and consuming from inside the process, for the hub and HTTP."""
