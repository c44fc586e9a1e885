"""ManagedSeedSets get as many replicas as their SeedAutoscalers want, by `rules`."""
