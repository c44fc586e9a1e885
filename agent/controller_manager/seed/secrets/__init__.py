"""Each Seed has a namespace in the garden, with copies of the garden's Secrets that its gardenlet needs."""
