"""VerticalPodAutoscalers whose pods are scaled down only in a maintenance window, or never."""
