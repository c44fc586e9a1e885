"""Pure functions: content of policies."""
