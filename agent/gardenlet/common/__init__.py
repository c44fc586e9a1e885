"""Code that several controllers of the gardenlet share; it knows none of them."""
