"""Gardenlets: those that keep themselves up to date."""
