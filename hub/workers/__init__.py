"""Runs functions on untrusted bytes in processes with limits of time and memory."""
