"""Pure functions: timing of ManagedSeeds, and configuration of their gardenlets."""
