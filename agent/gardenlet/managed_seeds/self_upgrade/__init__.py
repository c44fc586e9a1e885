"""The Gardenlet: `creation` creates the object of this gardenlet, `controller` upgrades this gardenlet from it."""
