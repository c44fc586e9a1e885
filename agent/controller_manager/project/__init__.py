"""Lifecycle of Projects: their namespaces and rights, whether they are used, and their deletion if they are not."""
