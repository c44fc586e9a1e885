"""Bastions: deleted when they expire, rot or lose their Shoot; and their heartbeat."""
