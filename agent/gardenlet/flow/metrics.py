"""Durations of flows and of their tasks."""

from prometheus_client import Histogram

gardenlet_flow_task_duration_seconds = Histogram(
    "gardenlet_flow_task_duration_seconds",
    "Duration of a successful or failed task of a flow in seconds, including waits and pauses.",
    ("flow", "task"),
    buckets=(0.1, 0.5, 1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800),
)
gardenlet_flow_duration_seconds = Histogram(
    "gardenlet_flow_duration_seconds",
    "Duration of a flow in seconds, including all waits of its tasks.",
    ("flow", "result"),
    buckets=(1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200),
)
