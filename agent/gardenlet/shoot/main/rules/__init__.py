"""Decisions of the controller `shoot`, without I/O."""
