"""This hub as a subscriber at other hubs: discovery, verification, renewal, content."""
