"""Pure functions: names, contents and renewal of Secrets."""
