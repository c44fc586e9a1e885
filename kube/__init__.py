"""Talking to a Kubernetes API: connection, client, discovery, watch, cache, queue, controller, election.

Knows nothing of Gardener or of this project's controllers. Objects are plain dicts as JSON gives them
(`Object`); nothing is converted into classes, since that costs five times the CPU on watches.
"""
