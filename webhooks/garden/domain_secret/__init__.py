"""Secrets that say which domains Shoots have."""
