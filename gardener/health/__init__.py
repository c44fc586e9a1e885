"""Health of an object by the rules of its kind."""
