"""Metrics of the scheduler for operators."""

from prometheus_client import Counter, Gauge, Histogram

SCHEDULED, UNSCHEDULABLE, REFUSED, FAILED = RESULTS = ("scheduled", "unschedulable", "refused", "failed")
NO_ROOM, NO_FIT = REASONS = ("no_room", "no_fit")
_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0)

attempts_total = Counter(
    "scheduler_attempts_total",
    "Attempts to find a Seed for a Shoot: scheduled, unschedulable, refused by admission, or failed otherwise.",
    ("result",),
)
duration_seconds = Histogram(
    "scheduler_duration_seconds", "Seconds that a decision took, without writing it.", buckets=_BUCKETS
)
filtered_seeds_total = Counter(
    "scheduler_filtered_seeds_total", "Seeds that were excluded in decisions, by the filter that did it.", ("stage",)
)
pending_shoots = Gauge(
    "scheduler_pending_shoots",
    "Shoots for which there is no Seed: since those that fit have no room, or since none fits.",
    ("reason",),
)
