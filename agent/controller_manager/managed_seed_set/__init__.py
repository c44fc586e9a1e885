"""ManagedSeedSets get the requested number of replicas, one after the other, by `rules`."""
