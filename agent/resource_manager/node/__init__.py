"""Controllers that follow the Nodes of the target cluster."""
