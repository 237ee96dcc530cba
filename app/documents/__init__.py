"""The JSON documents in responses; `/openapi.json` has their schemas."""
