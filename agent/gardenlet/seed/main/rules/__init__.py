"""Decisions of the controller `seed`, without I/O."""
