"""`warren conformance`: checks over HTTP whether any WebSub hub follows the specification.

This is a program of its own. It is a client of the hub under test, which may be anybody's, so it
uses no part of Warren's broker, hub or HTTP server. Of Warren it imports only `core.errors` (for
errors of the command line) and the parsers of `hub.links` (Link fields and XML).
"""
