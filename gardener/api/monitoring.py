"""The kinds of the Prometheus operator, which deploys and configures servers from them.

The operator validates their fields: here they are open. A seed may have them from another installation, with its rules.
"""

from collections.abc import Sequence

from gardener.api import kinds
from gardener.api.definition import AGE, Column, Definition, Scale
from gardener.api.schema import raw
from kube.resources import Resource

_SCALE = Scale(".spec.shards", ".status.shards", ".status.selector")
_REPLICAS = Scale(".spec.replicas", ".status.replicas", ".status.selector")
_AVAILABLE = Column("Available", '.status.conditions[?(@.type=="Available")].status')
_RECONCILED = Column("Reconciled", '.status.conditions[?(@.type=="Reconciled")].status')
_PAUSED = Column("Paused", ".status.paused", "boolean", priority=1)
_VERSION, _READY = Column("Version", ".spec.version"), Column("Ready", ".status.availableReplicas", "integer")
_OF_SERVERS = (_VERSION, Column("Desired", ".spec.replicas", "integer"), _READY, _RECONCILED, _AVAILABLE, AGE, _PAUSED)


def _server(resource: Resource, description: str, scale: Scale | None = None) -> Definition:
    fields = {"spec*": raw("Desired state of the object."), "status": raw("State that the operator reports.")}
    return Definition(resource=resource, description=description, fields=fields, columns=_OF_SERVERS, scale=scale)


def _part(resource: Resource, description: str, columns: Sequence[Column] = (AGE,)) -> Definition:
    """Kind for a part of a configuration, without a status."""
    fields = {"spec*": raw("Desired state of the object.")}
    return Definition(resource=resource, description=description, fields=fields, columns=columns)


DEFINITIONS: tuple[Definition, ...] = (
    _server(kinds.ALERTMANAGERS, "Servers that send alerts on.", _REPLICAS),
    _server(kinds.PROMETHEUSES, "Servers that scrape metrics, and keep them.", _SCALE),
    _server(kinds.PROMETHEUS_AGENTS, "Servers that scrape metrics, and send them on.", _SCALE),
    _server(kinds.THANOS_RULERS, "Servers that evaluate rules on the metrics of several others."),
    _part(kinds.ALERTMANAGER_CONFIGS, "Receivers of alerts."),
    _part(kinds.POD_MONITORS, "Pods to scrape."),
    _part(kinds.PROBES, "Addresses to probe."),
    _part(kinds.PROMETHEUS_RULES, "Alerts, and metrics that are computed from others."),
    _part(kinds.SCRAPE_CONFIGS, "Targets to scrape other than Pods and Services."),
    _part(kinds.SERVICE_MONITORS, "Services to scrape."),
)
