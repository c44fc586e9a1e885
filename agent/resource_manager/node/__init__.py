"""Controllers that watch the Nodes of the target cluster."""
