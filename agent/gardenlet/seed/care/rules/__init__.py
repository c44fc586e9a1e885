"""Pure functions: content of the condition."""
