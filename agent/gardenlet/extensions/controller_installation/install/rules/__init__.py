"""Pure functions: objects of an extension's installation."""
