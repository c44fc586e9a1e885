"""A module, or a package, for each kind of the garden API: its descriptor, and the rules that it alone has."""
