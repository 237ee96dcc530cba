"""A hub that waits while another one is active, and passes requests on to it."""
