"""When a ManagedSeed is looked at, what its gardenlet gets from it, and what it reports: pure."""
