"""A real Prometheus scrapes an agent, and finds the series that dashboards and alerts read.

Needs the program `prometheus` (Debian's package of that name), and is skipped without it.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.cluster import Cluster
from kit.processes.agent import AgentProcess, configuration
from kit.processes.prometheus import Prometheus

CONTROLLER_SERIES = [
    "controller_runtime_reconcile_total",
    "controller_runtime_reconcile_errors_total",
    "controller_runtime_terminal_reconcile_errors_total",
    "controller_runtime_reconcile_panics_total",
    "controller_runtime_reconcile_timeouts_total",
    "controller_runtime_reconcile_time_seconds_bucket",
    "controller_runtime_max_concurrent_reconciles",
    "controller_runtime_active_workers",
]
QUEUE_SERIES = [
    "workqueue_depth",
    "workqueue_adds_total",
    "workqueue_queue_duration_seconds_bucket",
    "workqueue_work_duration_seconds_bucket",
    "workqueue_unfinished_work_seconds",
    "workqueue_longest_running_processor_seconds",
    "workqueue_retries_total",
]
PROCESS_SERIES = [
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_max_fds",
    "process_resident_memory_bytes",
    "process_virtual_memory_bytes",
    "process_start_time_seconds",
    "rest_client_requests_total",
    "leader_election_master_status",
    "resource_manager_build_info",
]
CONTROLLERS = {"managedresource", "health", "health-progressing"}


@pytest.fixture
def prometheus(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[Prometheus]:
    if shutil.which("prometheus") is None:
        pytest.skip("needs the program prometheus")
    with AgentProcess(configuration(namespace), kubeconfig=cluster.kubeconfig).start() as agent:
        agent.wait_until_leading()
        with Prometheus(tmp_path, {"agent": f"127.0.0.1:{agent.metrics_port}"}) as scraper:
            yield scraper


def test_prometheus_finds_every_series_of_every_controller(prometheus: Prometheus) -> None:
    assert [sample["value"][1] for sample in prometheus.query('up{pod="agent"} == 1')] == ["1"]
    for name in CONTROLLER_SERIES:
        assert {sample["metric"]["controller"] for sample in prometheus.query(name)} == CONTROLLERS, name
    for name in QUEUE_SERIES:
        assert {sample["metric"]["name"] for sample in prometheus.query(name)} == CONTROLLERS, name
    for name in PROCESS_SERIES:
        assert prometheus.query(name), name


def test_the_series_that_dashboards_start_from_exist_before_anything_has_happened(prometheus: Prometheus) -> None:
    for controller in CONTROLLERS:
        samples = prometheus.query(f'controller_runtime_reconcile_total{{controller="{controller}"}}')
        results = {sample["metric"]["result"] for sample in samples}
        assert results == {"success", "error", "requeue", "requeue_after"}
    buckets = prometheus.query('controller_runtime_reconcile_time_seconds_bucket{controller="health"}')
    bounds = {float(sample["metric"]["le"]) for sample in buckets}
    assert {0.005, 0.35, 1.75, 60.0, float("inf")} <= bounds
    assert len(bounds) == 41
    buckets = prometheus.query('workqueue_queue_duration_seconds_bucket{name="health"}')
    assert len({sample["metric"]["le"] for sample in buckets}) == 13
    assert [s["value"][1] for s in prometheus.query("leader_election_master_status")] == ["1"]
