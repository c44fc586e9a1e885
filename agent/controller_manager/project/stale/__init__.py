"""Unused Projects are marked, and deleted after a long time."""
