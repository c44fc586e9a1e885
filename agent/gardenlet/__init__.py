"""The gardenlet: the agent of a seed. It opens all connections itself; only probes connect to it."""
