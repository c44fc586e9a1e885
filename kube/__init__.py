"""Kubernetes, for any program: the rules of its objects are here and pure; `runtime` and `apply` talk to an API server.

Objects are plain dicts as JSON gives them
(`Object`); nothing is converted into classes, since that costs five times the CPU on watches.

With `process` it is a library of its own; see docs/controller-kit.md.
"""

__version__ = "0.1.0"
"""Of the library: semantic, independent of the programs."""
