"""Gardenlets in other clusters, and the upgrade of this one: both are installed with the chart of `installation`."""
