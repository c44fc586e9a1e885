"""One module or package per kind of the garden API: its descriptor, and its own rules."""
