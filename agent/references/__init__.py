"""The command that stamps manifests for the garbage collector, by the rules of `gardener.references`."""
