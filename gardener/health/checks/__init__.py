"""One module a kind. `health` and `progress` take an object and return what is wrong, or None if all is well."""
