"""ManagedSeedSets: equal ManagedSeeds, each with its Shoot, made from templates."""
