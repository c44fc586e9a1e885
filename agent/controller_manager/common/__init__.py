"""Shared code of the controllers of the controller manager, independent of each of them."""
