"""The audit log: who has changed what, and who has logged in."""
