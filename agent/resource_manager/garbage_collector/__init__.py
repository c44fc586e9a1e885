"""Deletes ConfigMaps and Secrets of the target cluster that nothing refers to any more; see `gardener.references`."""
