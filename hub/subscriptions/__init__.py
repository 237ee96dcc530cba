"""The life of a subscription: asked for, verified, served, paused, ended, its callback told."""
