"""Pure functions of dry runs."""
