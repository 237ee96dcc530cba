"""Policies: what operators tell queues and exchanges to be like, by the pattern of their names."""
