"""Shoots: their clusters, and what is known of them."""
