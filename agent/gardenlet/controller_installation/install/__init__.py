"""Extensions are installed in the seed: charts become ManagedResources."""
