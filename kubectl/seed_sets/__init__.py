"""`kubectl mss`: what `kubectl rollout` is for Deployments, for ManagedSeedSets."""
