"""Shoots: their clusters, and their state in garden and seed."""
