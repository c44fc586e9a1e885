"""The gardenlet: the agent of a seed. It opens all connections itself, and nothing connects to it but probes."""
