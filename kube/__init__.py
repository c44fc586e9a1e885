"""Kubernetes, for any program: the rules of its objects are here and pure; `runtime` and `apply` talk to an API server.

Knows nothing of Gardener or of this project's controllers. Objects are plain dicts as JSON gives them
(`Object`); nothing is converted into classes, since that costs five times the CPU on watches.
"""
