"""Deletes Events before the API server does, but for those of Shoots."""
