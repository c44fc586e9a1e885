"""Objects that configure the Prometheus servers of a seed; a label names the server that reads each."""

from collections.abc import Mapping, Sequence
from typing import Any

from components.parts import GARDEN, made
from gardener.api.kinds import POD_MONITORS, PROMETHEUS_RULES, SCRAPE_CONFIGS, SERVICE_MONITORS
from kube.objects import Object

SERVER = "prometheus"
"""Label that names the server."""
CACHE, SEED, AGGREGATE = "cache", "seed", "aggregate"
OF_COMPONENTS = "garden|extension-.+|istio-.+|kube-system"
"""Namespaces other than those of Shoots, as a regular expression."""
OF_SHOOTS = "shoot-.+"
_ANNOTATION = "__meta_kubernetes_pod_annotation_prometheus_io_"
ANNOTATED: tuple[Object, ...] = (
    {"action": "keep", "sourceLabels": [f"{_ANNOTATION}scrape"], "regex": "true"},
    {
        "action": "replace",
        "sourceLabels": ["__address__", f"{_ANNOTATION}port"],
        "regex": r"(.+?)(?::\d+)?;(\d+)",
        "replacement": "$1:$2",
        "targetLabel": "__address__",
    },
    {"action": "replace", "sourceLabels": [f"{_ANNOTATION}name"], "regex": "(.+)", "targetLabel": "job"},
)
"""Relabelings for Pods with annotations `prometheus.io/scrape`, `port` and `name`."""


def service_monitor(
    server: str,
    name: str,
    *,
    selects: Mapping[str, str],
    namespace: str = GARDEN,
    endpoint: Object | None = None,
    **fields: Any,
) -> Object:
    """Args: endpoint: fields other than its port; fields: of the spec."""
    spec = {
        "selector": {"matchLabels": dict(selects)},
        "endpoints": [{"port": "metrics", **(endpoint or {})}],
        **fields,
    }
    return _of(SERVICE_MONITORS, server, name, spec, namespace=namespace)


def pod_monitor(
    server: str, name: str, *, endpoint: Object, selects: Mapping[str, str] | None = None, **fields: Any
) -> Object:
    """Args: fields: of the spec."""
    selector = {"matchLabels": dict(selects)} if selects else {}
    return _of(POD_MONITORS, server, name, {"selector": selector, "podMetricsEndpoints": [endpoint], **fields})


def scrape_config(server: str, name: str, **spec: Any) -> Object:
    return _of(SCRAPE_CONFIGS, server, name, spec)


def federation(server: str, name: str, *, targets: Sequence[str], matches: Sequence[str]) -> Object:
    """Take series of other servers unchanged. Args: targets: host and port; matches: selectors of series."""
    return scrape_config(
        server,
        name,
        honorLabels=True,
        honorTimestamps=False,
        metricsPath="/federate",
        params={"match[]": list(matches)},
        staticConfigs=[{"targets": list(targets)}],
    )


def rules(server: str, name: str, content: Sequence[Object]) -> Object:
    """Args: content: alerts, or computed series."""
    spec = {"groups": [{"name": f"{name}.rules", "interval": "1m", "rules": list(content)}]}
    return _of(PROMETHEUS_RULES, server, name, spec)


def keep(expression: str, *labels: str) -> Object:
    return {"action": "keep", "sourceLabels": list(labels or ("__name__",)), "regex": expression}


def drop(expression: str, *labels: str) -> Object:
    return {"action": "drop", "sourceLabels": list(labels or ("__name__",)), "regex": expression}


def _of(resource: Any, server: str, name: str, spec: Object, *, namespace: str = GARDEN) -> Object:
    return made(resource, f"{server}-{name}", namespace=namespace, labels={SERVER: server}, spec=spec)
