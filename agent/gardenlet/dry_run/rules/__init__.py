"""Pure rules of dry runs."""
