"""Namespaces of Projects, which only go with their Project."""
