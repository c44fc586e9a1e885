"""Pure functions: content of a Shoot's state, and its use in a restoration."""
