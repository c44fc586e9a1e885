"""ManagedSeedSets: what their replicas are, wait for and have been."""
