"""Code that several controllers of the resource manager share; it knows none of them."""
