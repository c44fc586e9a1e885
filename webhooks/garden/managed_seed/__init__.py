"""ManagedSeeds: Shoots that become Seeds, which get from the Shoot what their authors do not say."""
