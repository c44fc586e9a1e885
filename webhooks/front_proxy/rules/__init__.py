"""Heads of requests: parsing, and the changes to them; pure."""
