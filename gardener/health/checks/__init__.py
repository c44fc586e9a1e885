"""One module a kind. `health` and `progress` take an object and tell what is wrong, or None if all is well."""
