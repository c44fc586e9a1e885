"""ManagedSeedSets get as many replicas as they ask for, one after the other, by `rules`."""
