"""ManagedSeedSets get the number of replicas that their SeedAutoscalers request, by `rules`."""
