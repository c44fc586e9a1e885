"""ManagedSeeds: Shoots of this seed become seeds, each with a gardenlet in its cluster."""
