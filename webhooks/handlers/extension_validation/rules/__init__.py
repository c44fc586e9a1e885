"""Decoding and comparison of objects of all kinds: pure."""
