"""A real Prometheus scrapes agent and webhooks of the demo, and has an answer to every query of alerts and dashboards.

Needs the program `prometheus` (Debian's package of that name), and is skipped without it. What queries ask for is also
compared with what is documented, everywhere: tests/unit/test_monitoring.py.
"""

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster.cluster import Cluster
from devcluster.demo import admission
from devcluster.demo.bundles import GROUP
from kit.monitoring_files import Query, alert_queries, alerts, dashboard_queries, rules_text
from kit.processes.demo import RunningDemo
from kit.processes.prometheus import Prometheus
from kube.errors import Forbidden

pytestmark = [
    pytest.mark.usefixtures("devcluster_run"),
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs the program prometheus"),
]
MANAGED_RESOURCES = f"{GROUP}/namespaces/garden/managedresources"
PATIENCE = 300.0

NO_DATA = {
    "resource-manager-agent: Failed passes (B)": "nothing crashes",
    "resource-manager-agent: Failed passes (C)": "nothing takes so long",
    "resource-manager-agent: Garbage collection (A)": "the demo has it switched off",
    "resource-manager-agent: Caches that are behind (A)": "all are in order",
    "resource-manager-agent: Events that were dropped (A)": "none was",
    "resource-manager-agent: Decisions on certificates (A)": "the demo has the approver switched off",
    "resource-manager-agent: Memory (B)": "there may be no limit here",
    "resource-manager-agent: annotation Starts": "nothing is restarted",
    "resource-manager-webhooks: HTTP errors (A)": "there are none",
    "resource-manager-webhooks: Caches that are behind (A)": "all are in order",
    "resource-manager-webhooks: Memory (B)": "there may be no limit here",
    "resource-manager-webhooks: annotation Starts": "nothing is restarted",
}
"""Queries of dashboards that are answered by nothing here, and why."""

NO_SERIES = {
    "csr_approver_decisions_total": "the demo has the approver switched off",
    'controller="csr-approver"': "the demo has the approver switched off",
    'code="429"': "the API server is not that busy",
    'code=~"401|403"': "there are all rights",
    'code=~"5..|<error>"': "the API server is there",
}
"""Parts of selectors of alerts for which there are no series here, and why."""


@pytest.fixture
def demo() -> Iterator[RunningDemo]:
    name = f"monitored-{os.getpid()}"
    try:
        with RunningDemo(name) as demo:
            demo.read_until("Ctrl-C")
            yield demo
    finally:
        Cluster(name=name).stop()


def addresses(demo: RunningDemo) -> dict[str, str]:
    found = re.search(r"curl -s http://(\S+)/metrics http://(\S+)/metrics", demo.text)
    assert found, demo.text
    return {"agent-0": found[1], "webhooks-0": found[2]}


class Workload:
    """What makes the demo less perfect."""

    def __init__(self, demo: RunningDemo) -> None:
        self._api = demo.cluster.api

    def begin(self) -> None:
        identity = {"apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource"}
        for name, annotations in (("broken", {}), ("ignored", {"resources.gardener.cloud/ignore": "true"})):
            spec = {"secretRefs": [{"name": "there-is-none"}]}
            meta = {"name": name, "annotations": annotations}
            self._api.create(MANAGED_RESOURCES, {**identity, "metadata": meta, "spec": spec})
        ((collection, definition),) = admission.objects(admission.TREASURES)
        self._api.create(collection, definition)

    def go_on(self) -> None:
        """Something to repair, to roll out, and to refuse."""
        self._api.patch("/api/v1/namespaces/shop/configmaps/storefront", {"data": {"greeting": str(time.time())}})
        with contextlib.suppress(Forbidden):
            self._api.delete(f"{admission.TREASURE_DEFINITION}?dryRun=All")


def unanswered(prometheus: Prometheus, queries: list[Query]) -> list[Query]:
    return [query for query in queries if not prometheus.ask(query.text)]


def asked_by_dashboards() -> list[list[Query]]:
    """Each query for several choices, of which one is enough."""
    chosen = [{"name": "shop", "namespace": "garden"}, {"name": "ignored", "namespace": "garden"}]
    return [list(alike) for alike in zip(*(dashboard_queries(variables=each) for each in chosen), strict=True)]


def selectors_of_alerts() -> list[str]:
    reads = {series.text for query in alert_queries() for series in query.reads}
    return sorted(text for text in reads if not any(part in text for part in NO_SERIES))


def test_every_query_of_dashboards_and_alerts_has_an_answer(demo: RunningDemo, tmp_path: Path) -> None:
    workload = Workload(demo)
    workload.begin()
    with Prometheus(tmp_path, addresses(demo), rules=rules_text()) as prometheus:
        assert prometheus.query("count(up == 1) == 2")
        waiting = [each for each in asked_by_dashboards() if each[0].where not in NO_DATA]
        selectors = selectors_of_alerts()
        deadline = time.monotonic() + PATIENCE
        while waiting or selectors:
            assert time.monotonic() < deadline, f"without an answer: {waiting} {selectors}"
            workload.go_on()
            waiting = [each for each in waiting if len(unanswered(prometheus, each)) == len(each)]
            selectors = [text for text in selectors if not prometheus.ask(text)]
            time.sleep(0.5)
        for query in alert_queries():
            prometheus.ask(query.text)
        for alike in asked_by_dashboards():
            for query in alike:
                prometheus.ask(query.text)
        assert_rules_work(prometheus)


def assert_rules_work(prometheus: Prometheus) -> None:
    """They are loaded, evaluated, and see what is wrong."""
    deadline = time.monotonic() + PATIENCE
    while True:
        rules: dict[str, Any] = {
            rule["name"]: rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]
        }
        # What is critical is in order in the demo; a scrape that came too late is forgotten with the next.
        critical = {name for name, rule in rules.items() if rule["alerts"] and rule["labels"]["severity"] == "critical"}
        known = all(rule["health"] != "unknown" for rule in rules.values())
        if known and rules["ManagedResourceNotApplied"]["alerts"] and not critical:
            break
        assert time.monotonic() < deadline, rules
        time.sleep(0.5)
    assert rules.keys() == alerts().keys()
    assert {name: rule["lastError"] for name, rule in rules.items() if rule.get("lastError")} == {}
    (alert,) = rules["ManagedResourceNotApplied"]["alerts"]
    assert (alert["labels"]["namespace"], alert["labels"]["name"], alert["state"]) == ("garden", "broken", "pending")
    assert "garden/broken" in alert["annotations"]["description"]


def test_what_has_no_answer_is_named_rightly() -> None:
    names = {query.where for query in dashboard_queries()}
    assert names >= NO_DATA.keys()
    texts = " ".join(series.text for query in alert_queries() for series in query.reads)
    assert all(part in texts for part in NO_SERIES)
