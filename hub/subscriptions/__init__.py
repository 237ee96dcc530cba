"""Subscriptions: requested, verified, stored, attached to the engine, paused and ended."""
