"""The kinds of the Prometheus operator, which deploys and configures servers from them.

The operator validates their fields: here they are open. A seed may have them from another installation, with its rules.
"""

from collections.abc import Sequence

from gardener.api import kinds
from gardener.api.definition import AGE, Column, Definition, Scale, open_fields
from kube.resources import Resource

_SCALE = Scale(".spec.shards", ".status.shards", ".status.selector")
_REPLICAS = Scale(".spec.replicas", ".status.replicas", ".status.selector")
_AVAILABLE = Column("Available", '.status.conditions[?(@.type=="Available")].status')
_RECONCILED = Column("Reconciled", '.status.conditions[?(@.type=="Reconciled")].status')
_PAUSED = Column("Paused", ".status.paused", "boolean", priority=1)
_VERSION, _READY = Column("Version", ".spec.version"), Column("Ready", ".status.availableReplicas", "integer")
_OF_SERVERS = (_VERSION, Column("Desired", ".spec.replicas", "integer"), _READY, _RECONCILED, _AVAILABLE, AGE, _PAUSED)


def _definition(
    resource: Resource, description: str, columns: Sequence[Column] = (AGE,), scale: Scale | None = None
) -> Definition:
    spec, status = open_fields("the operator").values()
    fields = {"spec*": spec, "status": status}
    return Definition(resource=resource, description=description, fields=fields, columns=columns, scale=scale)


def _server(resource: Resource, description: str, scale: Scale | None = None) -> Definition:
    return _definition(resource, description, _OF_SERVERS, scale)


DEFINITIONS: tuple[Definition, ...] = (
    _server(kinds.ALERTMANAGERS, "Servers that send alerts on.", _REPLICAS),
    _server(kinds.PROMETHEUSES, "Servers that scrape metrics, and keep them.", _SCALE),
    _server(kinds.PROMETHEUS_AGENTS, "Servers that scrape metrics, and send them on.", _SCALE),
    _server(kinds.THANOS_RULERS, "Servers that evaluate rules on the metrics of several others."),
    _definition(kinds.ALERTMANAGER_CONFIGS, "Receivers of alerts."),
    _definition(kinds.POD_MONITORS, "Pods to scrape."),
    _definition(kinds.PROBES, "Addresses to probe."),
    _definition(kinds.PROMETHEUS_RULES, "Alerts, and metrics that are computed from others."),
    _definition(kinds.SCRAPE_CONFIGS, "Targets to scrape other than Pods and Services."),
    _definition(kinds.SERVICE_MONITORS, "Services to scrape."),
)
