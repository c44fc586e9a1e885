"""Admission server, called by API servers before they store an object."""
