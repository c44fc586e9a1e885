"""Dashboards of a seed in Plutono's format: rows of graphs, each with one query."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from components.prometheus import OF_COMPONENTS
from kube.objects import Object

_COMPONENTS = f'namespace=~"{OF_COMPONENTS}"'
_MANAGER = '{job="gardener-resource-manager"}'
_WIDTH, _HEIGHT, _A_ROW = 12, 8, 2
_SCHEMA = 27
"""Schema version of the Grafana release that Plutono was forked from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Attributes: unit: of the axis; legend: of a line, with labels as `{{label}}`."""

    title: str
    query: str
    legend: str
    unit: str = "short"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """Attributes: source: name of the data source of its queries."""

    name: str
    title: str
    source: str
    graphs: Sequence[Graph]


ALL: Sequence[Dashboard] = (
    Dashboard(
        name="seed-components",
        title="Components of the seed",
        source="seed-prometheus",
        graphs=(
            Graph(
                title="Pods that are not available, by Deployment",
                query=f"kube_deployment_status_replicas_unavailable{{{_COMPONENTS}}}",
                legend="{{namespace}}/{{deployment}}",
            ),
            Graph(
                title="Restarts of containers within an hour",
                query=f"increase(kube_pod_container_status_restarts_total{{{_COMPONENTS}}}[1h]) > 0",
                legend="{{namespace}}/{{pod}} {{container}}",
            ),
            Graph(
                title="CPU of the ten largest Pods",
                query='topk(10, sum by (namespace, pod) (rate(container_cpu_usage_seconds_total{container!=""}[5m])))',
                legend="{{namespace}}/{{pod}}",
            ),
            Graph(
                title="Memory of the ten largest Pods",
                query='topk(10, sum by (namespace, pod) (container_memory_working_set_bytes{container!=""}))',
                legend="{{namespace}}/{{pod}}",
                unit="bytes",
            ),
            Graph(title="Targets that can't be scraped", query="count by (job) (up == 0)", legend="{{job}}"),
        ),
    ),
    Dashboard(
        name="seed-resource-manager",
        title="Resource manager of the seed",
        source="seed-prometheus",
        graphs=(
            Graph(
                title="Reconciliations a second",
                query=f"sum by (controller) (rate(controller_runtime_reconcile_total{_MANAGER}[5m]))",
                legend="{{controller}}",
            ),
            Graph(
                title="Reconciliations a second that fail",
                query=f"sum by (controller) (rate(controller_runtime_reconcile_errors_total{_MANAGER}[5m])) > 0",
                legend="{{controller}}",
            ),
            Graph(
                title="What waits in queues",
                query=f"sum by (name) (workqueue_depth{_MANAGER})",
                legend="{{name}}",
            ),
            Graph(
                title="Memory",
                query=f"process_resident_memory_bytes{_MANAGER}",
                legend="{{pod}}",
                unit="bytes",
            ),
        ),
    ),
    Dashboard(
        name="control-planes",
        title="Control planes of Shoots",
        source="prometheus",
        graphs=(
            Graph(
                title="CPU of the ten largest",
                query='topk(10, namespace:container_cpu_usage_seconds:rate5m{namespace=~"shoot-.+"})',
                legend="{{namespace}}",
            ),
            Graph(
                title="Memory of the ten largest",
                query='topk(10, namespace:container_memory_working_set_bytes:sum{namespace=~"shoot-.+"})',
                legend="{{namespace}}",
                unit="bytes",
            ),
            Graph(
                title="Requested, as a part of what nodes have",
                query="seed:requests:sum / on (resource) seed:allocatable:sum",
                legend="{{resource}}",
                unit="percentunit",
            ),
            Graph(title="Nodes that are ready", query="seed:nodes_ready:count", legend="ready"),
        ),
    ),
)


def files() -> Mapping[str, str]:
    """Files of all dashboards, by name."""
    return {f"{each.name}.json": orjson.dumps(_as_json(each)).decode() for each in ALL}


def _as_json(dashboard: Dashboard) -> Object:
    return {
        "uid": dashboard.name,
        "title": dashboard.title,
        "tags": ["seed"],
        "editable": False,
        "schemaVersion": _SCHEMA,
        "refresh": "1m",
        "time": {"from": "now-3h", "to": "now"},
        "panels": list(_panels(dashboard)),
    }


def _panels(dashboard: Dashboard) -> Iterator[Object]:
    for number, graph in enumerate(dashboard.graphs):
        row, column = divmod(number, _A_ROW)
        yield {
            "id": number + 1,
            "type": "graph",
            "title": graph.title,
            "datasource": dashboard.source,
            "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
            "targets": [{"refId": "A", "expr": graph.query, "legendFormat": graph.legend}],
            "yaxes": [{"format": graph.unit, "show": True, "min": "0"}, {"format": "short", "show": False}],
        }
