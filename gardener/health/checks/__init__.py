"""Health rules, one module per kind. `health` and `progress` take an object and return its problem, or None."""
