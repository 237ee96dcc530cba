"""Runs functions on bytes of strangers in processes with limits of time and memory."""
