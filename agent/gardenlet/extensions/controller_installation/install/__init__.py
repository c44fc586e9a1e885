"""Installation of extensions in the seed: charts become ManagedResources."""
