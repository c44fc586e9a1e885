"""What a VerticalPodAutoscaler has to require: pure."""
