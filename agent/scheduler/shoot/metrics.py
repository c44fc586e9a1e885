"""Metrics of the scheduler for operators."""

from prometheus_client import Counter, Gauge, Histogram

SCHEDULED, UNSCHEDULABLE, REFUSED, FAILED = RESULTS = ("scheduled", "unschedulable", "refused", "failed")
NO_ROOM, NO_FIT = REASONS = ("no_room", "no_fit")
_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0)

attempts_total = Counter(
    "scheduler_attempts_total",
    "Number of attempts to find a Seed for a Shoot: scheduled, unschedulable, refused by admission, or failed "
    "otherwise.",
    ("result",),
)
duration_seconds = Histogram(
    "scheduler_duration_seconds", "Duration of a decision in seconds, without writing it.", buckets=_BUCKETS
)
filtered_seeds_total = Counter(
    "scheduler_filtered_seeds_total", "Number of Seeds that were excluded in decisions, by filter.", ("stage",)
)
pending_shoots = Gauge(
    "scheduler_pending_shoots",
    "Number of Shoots without a Seed: no capacity on matching Seeds, or no matching Seed.",
    ("reason",),
)
