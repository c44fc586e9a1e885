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
    "controller_runtime_reconcile_total",
    "Number of reconciliations by controller and result.",
    ("controller", "result"),
)
controller_runtime_reconcile_errors_total = Counter(
    "controller_runtime_reconcile_errors_total", "Number of failed reconciliations.", _CONTROLLER
)
controller_runtime_terminal_reconcile_errors_total = Counter(
    "controller_runtime_terminal_reconcile_errors_total",
    "Number of reconciliations that failed with an error that is not retried.",
    _CONTROLLER,
)
controller_runtime_reconcile_panics_total = Counter(
    "controller_runtime_reconcile_panics_total", "Number of crashed reconciliations.", _CONTROLLER
)
controller_runtime_reconcile_timeouts_total = Counter(
    "controller_runtime_reconcile_timeouts_total",
    "Number of reconciliations that exceeded their time limit.",
    _CONTROLLER,
)
controller_runtime_reconcile_time_seconds = Histogram(
    "controller_runtime_reconcile_time_seconds",
    "Duration of a reconciliation in seconds.",
    _CONTROLLER,
    buckets=RECONCILE_BUCKETS,
)
controller_runtime_max_concurrent_reconciles = Gauge(
    "controller_runtime_max_concurrent_reconciles", "Maximum number of concurrent reconciliations.", _CONTROLLER
)
controller_runtime_active_workers = Gauge(
    "controller_runtime_active_workers", "Number of running reconciliations.", _CONTROLLER
)

controller_last_pass_time_seconds = Gauge(
    "controller_last_pass_time_seconds", "Unix time of the last reconciliation without an error.", _CONTROLLER
)
controller_limited_objects = Gauge(
    "controller_limited_objects", "Number of objects that exceed a limit of the controller.", _CONTROLLER
)

workqueue_depth = Gauge(
    "workqueue_depth", "Number of keys that wait for a worker, without delayed keys.", (*_QUEUE, "priority")
)
workqueue_adds_total = Counter("workqueue_adds_total", "Number of keys that became due.", _QUEUE)
workqueue_retries_total = Counter("workqueue_retries_total", "Number of keys that were added with a delay.", _QUEUE)
workqueue_queue_duration_seconds = Histogram(
    "workqueue_queue_duration_seconds",
    "Time that a due key waited for a worker, in seconds.",
    _QUEUE,
    buckets=DECADE_BUCKETS,
)
workqueue_work_duration_seconds = Histogram(
    "workqueue_work_duration_seconds", "Time that a worker processed a key, in seconds.", _QUEUE, buckets=DECADE_BUCKETS
)
workqueue_unfinished_work_seconds = Gauge(
    "workqueue_unfinished_work_seconds",
    "Total time that all keys in progress have been processed so far, in seconds.",
    _QUEUE,
)
workqueue_longest_running_processor_seconds = Gauge(
    "workqueue_longest_running_processor_seconds",
    "Time that the longest-running key has been processed so far, in seconds.",
    _QUEUE,
)

rest_client_requests_total = Counter(
    "rest_client_requests_total",
    "Number of requests to API servers; code <error>: no response.",
    ("code", "method", "host"),
)
rest_client_rate_limiter_duration_seconds = Histogram(
    "rest_client_rate_limiter_duration_seconds",
    "Time that a request waited for the rate limit of the client, in seconds.",
    ("host",),
    buckets=_WAITING_BUCKETS,
)

rest_client_open_watches = Gauge("rest_client_open_watches", "Number of open watches.")

leader_election_master_status = Gauge(
    "leader_election_master_status", "1 while this process is the leader, by name of the Lease.", ("name",)
)

certwatcher_read_certificate_total = Counter(
    "certwatcher_read_certificate_total", "Number of attempts to read the server certificate."
)
certwatcher_read_certificate_errors_total = Counter(
    "certwatcher_read_certificate_errors_total", "Number of failed attempts to read the server certificate."
)

event_recorder_dropped_total = Counter(
    "event_recorder_dropped_total",
    "Number of Events that were not written: queue_full, rate_limited (per object), or failed (refused or no "
    "response).",
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
