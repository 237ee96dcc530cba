"""Where a topic names its hubs and its own URL: header, feed, page or JSON Feed."""
