"""The manual: the Markdown files of `docs` as pages of `/docs/`."""
