"""Routing: which queues a message goes to, by exchanges, bindings and alternates.

`registry` creates exchanges, `exchange` holds bindings, and `resolve` follows them from an exchange
to the queues and returns a `Route`.
"""
