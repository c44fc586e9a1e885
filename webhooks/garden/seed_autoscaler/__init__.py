"""SeedAutoscalers: how many replicas a ManagedSeedSet has."""
