"""VerticalPodAutoscalers whose pods are evicted to get less only in a maintenance window, or never."""
