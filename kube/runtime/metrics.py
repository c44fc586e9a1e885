"""Metrics of requests to Kubernetes and of controllers, under the names that existing dashboards use.

Names, labels and buckets are those of controller-runtime and client-go. The metric objects are made once, when
this module is imported, in the default registry. Looking up a labelled child costs more than counting with it, so
`ControllerMetrics` and `QueueMetrics` hold their children: they are resolved once per controller, and their series
exist with value 0 from then on.
"""

from collections.abc import Callable

from prometheus_client import Counter, Gauge, Histogram

RECONCILE_BUCKETS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9),
    *(1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0),
    *(10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)
DECADE_BUCKETS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0)
_WAITING_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)

_CONTROLLER = ("controller",)
_QUEUE = ("name", "controller")

controller_runtime_reconcile_total = Counter(
    "controller_runtime_reconcile_total", "Reconciliations per controller and result.", ("controller", "result")
)
controller_runtime_reconcile_errors_total = Counter(
    "controller_runtime_reconcile_errors_total", "Reconciliations that failed.", _CONTROLLER
)
controller_runtime_terminal_reconcile_errors_total = Counter(
    "controller_runtime_terminal_reconcile_errors_total",
    "Reconciliations that failed in a way that trying again cannot mend.",
    _CONTROLLER,
)
controller_runtime_reconcile_panics_total = Counter(
    "controller_runtime_reconcile_panics_total", "Reconciliations that crashed.", _CONTROLLER
)
controller_runtime_reconcile_timeouts_total = Counter(
    "controller_runtime_reconcile_timeouts_total", "Reconciliations that exceeded their time limit.", _CONTROLLER
)
controller_runtime_reconcile_time_seconds = Histogram(
    "controller_runtime_reconcile_time_seconds",
    "Seconds that one reconciliation took.",
    _CONTROLLER,
    buckets=RECONCILE_BUCKETS,
)
controller_runtime_max_concurrent_reconciles = Gauge(
    "controller_runtime_max_concurrent_reconciles", "How many objects are reconciled at once at most.", _CONTROLLER
)
controller_runtime_active_workers = Gauge(
    "controller_runtime_active_workers", "How many objects are being reconciled.", _CONTROLLER
)

controller_last_pass_time_seconds = Gauge(
    "controller_last_pass_time_seconds", "When a reconciliation last ended without an error, in Unix time.", _CONTROLLER
)
controller_limited_objects = Gauge(
    "controller_limited_objects", "Objects that ask for more than one object may cause, by controller.", _CONTROLLER
)

workqueue_depth = Gauge(
    "workqueue_depth", "Keys that wait for a worker, without those of a later time.", (*_QUEUE, "priority")
)
workqueue_adds_total = Counter("workqueue_adds_total", "Keys that became due.", _QUEUE)
workqueue_retries_total = Counter("workqueue_retries_total", "Keys that were added for a later time.", _QUEUE)
workqueue_queue_duration_seconds = Histogram(
    "workqueue_queue_duration_seconds", "Seconds that a due key waited for a worker.", _QUEUE, buckets=DECADE_BUCKETS
)
workqueue_work_duration_seconds = Histogram(
    "workqueue_work_duration_seconds", "Seconds that a worker held a key.", _QUEUE, buckets=DECADE_BUCKETS
)
workqueue_unfinished_work_seconds = Gauge(
    "workqueue_unfinished_work_seconds", "Seconds that all keys in work have been held so far, together.", _QUEUE
)
workqueue_longest_running_processor_seconds = Gauge(
    "workqueue_longest_running_processor_seconds", "Seconds that the key longest in work has been held so far.", _QUEUE
)

rest_client_requests_total = Counter(
    "rest_client_requests_total", "Requests to API servers; code <error> if no answer came.", ("code", "method", "host")
)
rest_client_rate_limiter_duration_seconds = Histogram(
    "rest_client_rate_limiter_duration_seconds",
    "Seconds that a request waited for the client's own rate limit.",
    ("host",),
    buckets=_WAITING_BUCKETS,
)

rest_client_open_watches = Gauge("rest_client_open_watches", "Watches that are open.")

leader_election_master_status = Gauge(
    "leader_election_master_status", "1 while this process leads, by name of the lease.", ("name",)
)

certwatcher_read_certificate_total = Counter(
    "certwatcher_read_certificate_total", "Attempts to read the server certificate."
)
certwatcher_read_certificate_errors_total = Counter(
    "certwatcher_read_certificate_errors_total", "Failed attempts to read the server certificate."
)

event_recorder_dropped_total = Counter(
    "event_recorder_dropped_total",
    "Events that were not written: queue_full, rate_limited (of one object), or failed (refused or no answer).",
    ("reason",),
)


def forget_host(host: str) -> None:
    """Drop the series of an API server without connections."""
    rest_client_requests_total.remove_by_labels({"host": host})
    rest_client_rate_limiter_duration_seconds.remove_by_labels({"host": host})


class ControllerMetrics:
    def __init__(self, controller: str, *, workers: int) -> None:
        controller_runtime_max_concurrent_reconciles.labels(controller).set(workers)
        results = controller_runtime_reconcile_total
        self.success = results.labels(controller, "success")
        self.requeue = results.labels(controller, "requeue")
        self.requeue_after = results.labels(controller, "requeue_after")
        self.error = results.labels(controller, "error")
        self.errors = controller_runtime_reconcile_errors_total.labels(controller)
        self.terminal_errors = controller_runtime_terminal_reconcile_errors_total.labels(controller)
        self.panics = controller_runtime_reconcile_panics_total.labels(controller)
        self.timeouts = controller_runtime_reconcile_timeouts_total.labels(controller)
        self.seconds = controller_runtime_reconcile_time_seconds.labels(controller)
        self.last_pass = controller_last_pass_time_seconds.labels(controller)
        self.active_workers = controller_runtime_active_workers.labels(controller)


class QueueMetrics:
    """Children of one queue. Values that change with time alone are computed when read."""

    def __init__(
        self,
        name: str,
        *,
        depth_by_priority: dict[int, Callable[[], float]],
        unfinished: Callable[[], float],
        longest_running: Callable[[], float],
    ) -> None:
        for priority, depth in depth_by_priority.items():
            workqueue_depth.labels(name, name, str(priority)).set_function(depth)
        workqueue_unfinished_work_seconds.labels(name, name).set_function(unfinished)
        workqueue_longest_running_processor_seconds.labels(name, name).set_function(longest_running)
        self.adds = workqueue_adds_total.labels(name, name)
        self.retries = workqueue_retries_total.labels(name, name)
        self.queue_seconds = workqueue_queue_duration_seconds.labels(name, name)
        self.work_seconds = workqueue_work_duration_seconds.labels(name, name)
