"""The gardenlet: the agent of a garden on a seed cluster."""
