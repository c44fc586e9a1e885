"""`kubectl mss`: the counterpart of `kubectl rollout` for ManagedSeedSets."""
