"""Pure functions: eviction requirements of a VerticalPodAutoscaler."""
