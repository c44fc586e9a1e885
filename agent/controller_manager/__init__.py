"""Controllers of the garden: they work on its API alone, and never talk to a seed or a shoot."""
