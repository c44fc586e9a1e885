"""Approves the client certificates of gardenlets."""
