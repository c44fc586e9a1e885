"""Controllers of Shoots, each for one part of them; the gardenlet creates the cluster."""
