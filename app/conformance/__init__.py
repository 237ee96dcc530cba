"""`warren conformance`: asks any WebSub hub, over HTTP, whether it does what WebSub says."""
