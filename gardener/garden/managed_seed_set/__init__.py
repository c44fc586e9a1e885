"""ManagedSeedSets: what their replicas are, and what is done next for them."""
