"""ManagedSeedSets get as many replicas as their SeedAutoscalers want; see `gardener.garden.seed_autoscaler`."""
