"""Tasks of the flows, by area; they are independent of their order."""
