"""The controllers of the gardenlet's own Seed."""
