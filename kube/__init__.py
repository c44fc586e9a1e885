"""Kubernetes library for any program: pure rules for objects; `runtime` and `apply` talk to an API server.

Objects are plain dicts as decoded from JSON (`Object`); converting them into classes costs five times the CPU on
watches.

Together with `process` it can be used on its own; see docs/controller-kit.md.
"""

__version__ = "0.1.0"
"""Semantic version of the library, independent of the programs."""
