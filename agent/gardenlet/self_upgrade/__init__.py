"""The Gardenlet: this gardenlet updates itself from its object."""
