"""Controllers of Shoots, each for one part of them; what makes a cluster of a Shoot is the gardenlet's work."""
