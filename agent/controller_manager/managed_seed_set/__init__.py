"""ManagedSeedSets get as many replicas as they ask for, one after the other; see `gardener.garden.managed_seed_set`."""
