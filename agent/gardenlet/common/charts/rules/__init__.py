"""Pure functions on the output of `helm` and on chart references."""
