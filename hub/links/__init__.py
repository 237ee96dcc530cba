"""Discovery of a topic's hubs and own URL: in header, feed, page or JSON Feed."""
